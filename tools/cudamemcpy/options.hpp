// SPDX-License-Identifier: Apache-2.0
// The options that cudamemcpy alone has, and which of them go together.
#pragma once

#include "tools/cudamemcpy/columns.hpp"

namespace gpusnoop {
class CommandLine;
}

namespace gpusnoop::cudamemcpy {

void add_own_options(CommandLine& line, Settings& settings);

// What follows from what was asked for. Throws UsageError where that makes no sense.
void validate_options(Settings& settings, const Options& options);

} // namespace gpusnoop::cudamemcpy
