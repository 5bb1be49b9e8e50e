// SPDX-License-Identifier: Apache-2.0
// Conversion of a line of -e to the row that a table would have for this one call.
#pragma once

#include "output/record.hpp"

#include <optional>
#include <string_view>

namespace gpusnoop::cudadiff {

// nullopt if lines of this tool are not compared.
std::optional<Record> row_of_event(std::string_view tool, const Record& event);

} // namespace gpusnoop::cudadiff
