// SPDX-License-Identifier: Apache-2.0
// What a run of cudasync was asked for, and whether that goes together.
#pragma once

#include "tools/cudasync/columns.hpp"

namespace gpusnoop::cudasync {

// What follows from what was asked for. Throws UsageError where that makes no sense.
void validate_options(Settings& settings, const Options& options);

} // namespace gpusnoop::cudasync
