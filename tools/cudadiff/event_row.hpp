// SPDX-License-Identifier: Apache-2.0
// A line of -e, as the row that a table would have of this one call.
#pragma once

#include "output/record.hpp"

#include <optional>
#include <string_view>

namespace gpusnoop::cudadiff {

// Nullopt: of this tool, lines are not compared.
std::optional<Record> row_of_event(std::string_view tool, const Record& event);

} // namespace gpusnoop::cudadiff
