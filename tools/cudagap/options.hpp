// SPDX-License-Identifier: Apache-2.0
// cudagap's options and their validation.
#pragma once

#include "run/command_line.hpp"
#include "tools/cudagap/columns.hpp"

namespace gpusnoop::cudagap {

void add_options(CommandLine& line, Settings& settings);

// Derives settings from the options. Throws UsageError for options that exclude each other.
void validate_options(Settings& settings, const Options& options);

} // namespace gpusnoop::cudagap
