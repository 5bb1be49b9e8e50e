// SPDX-License-Identifier: Apache-2.0
// The options that only cudatop has, and their validation.
#pragma once

#include "tools/cudatop/columns.hpp"

namespace gpusnoop {
class CommandLine;
}

namespace gpusnoop::cudatop {

void add_own_options(CommandLine& line, Settings& settings);

// Checks that the options can be combined, and sets the settings that depend on several options. Throws UsageError.
void validate_options(Settings& settings, const Options& options);

} // namespace gpusnoop::cudatop
