// SPDX-License-Identifier: Apache-2.0
// The options that gpualloc alone has, and which of them go together.
#pragma once

#include "gpualloc_columns.hpp"

#include <CLI/CLI.hpp>

namespace gpusnoop::gpualloc {

void add_own_options(CLI::App& app, Settings& settings);

// What follows from what was asked for. Throws UsageError where that makes no sense.
void settle_options(Settings& settings, Options& options);

} // namespace gpusnoop::gpualloc
