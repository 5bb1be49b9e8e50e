// SPDX-License-Identifier: Apache-2.0
// The options that cudatop alone has, and which of them go together.
#pragma once

#include "cudatop_columns.hpp"

#include <CLI/CLI.hpp>

namespace gpusnoop::cudatop {

void add_own_options(CLI::App& app, Settings& settings);

// What follows from what was asked for. Throws UsageError where that makes no sense.
void settle_options(Settings& settings, const Options& options);

} // namespace gpusnoop::cudatop
