// SPDX-License-Identifier: Apache-2.0
// Conversion of a line of -e to the table row that a tool would print for this one call.
#pragma once

#include "output/record.hpp"

#include <optional>
#include <string_view>

namespace gpusnoop::cudadiff {

// nullopt if lines of this tool cannot be compared.
std::optional<Record> row_of_event(std::string_view tool, const Record& event);

} // namespace gpusnoop::cudadiff
