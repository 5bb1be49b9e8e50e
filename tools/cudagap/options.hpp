// SPDX-License-Identifier: Apache-2.0
// What a run of cudagap was asked for, and whether that goes together.
#pragma once

#include "run/command_line.hpp"
#include "tools/cudagap/columns.hpp"

namespace gpusnoop::cudagap {

void add_options(CommandLine& line, Settings& settings);

// What follows from what was asked for. Throws UsageError where that makes no sense.
void validate_options(Settings& settings, const Options& options);

} // namespace gpusnoop::cudagap
