// SPDX-License-Identifier: Apache-2.0
// gpuspend's options and their validation.
#pragma once

#include "run/command_line.hpp"
#include "tools/gpuspend/columns.hpp"

namespace gpusnoop::gpuspend {

void add_own_options(CommandLine& line, Settings& settings);

// Derives settings from the options. Throws UsageError for options that exclude each other.
void validate_options(Settings& settings, const Options& options);

} // namespace gpusnoop::gpuspend
