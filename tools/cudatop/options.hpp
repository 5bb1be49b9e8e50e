// SPDX-License-Identifier: Apache-2.0
// The options that cudatop alone has, and which of them go together.
#pragma once

#include "tools/cudatop/columns.hpp"

namespace gpusnoop {
class CommandLine;
}

namespace gpusnoop::cudatop {

void add_own_options(CommandLine& line, Settings& settings);

// What follows from what was asked for. Throws UsageError where that makes no sense.
void validate_options(Settings& settings, const Options& options);

} // namespace gpusnoop::cudatop
