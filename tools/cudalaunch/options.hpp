// SPDX-License-Identifier: Apache-2.0
// The options that cudalaunch alone has, and which of them go together.
#pragma once

#include "tools/cudalaunch/columns.hpp"

namespace gpusnoop {
class CommandLine;
}

namespace gpusnoop::cudalaunch {

void add_own_options(CommandLine& line, Settings& settings);

// What follows from what was asked for. Throws UsageError where that makes no sense.
void validate_options(Settings& settings, const Options& options);

} // namespace gpusnoop::cudalaunch
