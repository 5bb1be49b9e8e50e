// SPDX-License-Identifier: Apache-2.0
// Rows and lines with frames, added up over a run and written as flame graphs when it ends.
#pragma once

#include "base/options.hpp"
#include "output/outputs_beside.hpp"

#include <memory>

namespace gpusnoop {

// Throws UsageError where it makes no sense.
void check_flame_options(const Options& options);

// In place of what is shown, for --folded.
std::unique_ptr<Output> make_folded_output(const Options& options);

// In files, beside what is shown. Throws Error where one cannot be written; check() does where one could not.
OutputBeside make_flames_output(const Options& options);

} // namespace gpusnoop
