// SPDX-License-Identifier: Apache-2.0
// Outputs to files, used in addition to the normal output.
#pragma once

#include "rows/output.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace gpusnoop {

struct SideOutput {
    std::unique_ptr<Output> output;
    std::function<void()> check{}; // called after end(); throws Error if the file is incomplete
};

// Combines the outputs. If a side output fails, end() throws its error, but only after all outputs have been flushed.
std::unique_ptr<Output> make_output_with_sides(std::unique_ptr<Output> shown, std::vector<SideOutput> sides);

} // namespace gpusnoop
