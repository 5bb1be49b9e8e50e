// SPDX-License-Identifier: Apache-2.0
// The options that gpualloc alone has, and which of them go together.
#pragma once

#include "tools/gpualloc/columns.hpp"

namespace gpusnoop {
class CommandLine;
}

namespace gpusnoop::gpualloc {

void add_own_options(CommandLine& line, Settings& settings);

// What follows from what was asked for. Throws UsageError where that makes no sense.
void validate_options(Settings& settings, Options& options);

} // namespace gpusnoop::gpualloc
