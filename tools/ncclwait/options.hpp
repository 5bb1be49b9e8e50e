// SPDX-License-Identifier: Apache-2.0
// What a run of ncclwait was asked for, and whether that goes together.
#pragma once

#include "run/command_line.hpp"
#include "tools/ncclwait/columns.hpp"

namespace gpusnoop::ncclwait {

void add_options(CommandLine& line, Settings& settings);

// What follows from what was asked for. Throws UsageError where that makes no sense.
void validate_options(Settings& settings, const Options& options);

} // namespace gpusnoop::ncclwait
