// SPDX-License-Identifier: Apache-2.0
// What is shown, and files beside it that get all of it, too.
#pragma once

#include "rows/output.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace gpusnoop {

struct SideOutput {
    std::unique_ptr<Output> output;
    std::function<void()> check{}; // after the end: throws Error where it is not whole
};

// end() throws what is wrong with one beside after all has been shown.
std::unique_ptr<Output> make_output_with_sides(std::unique_ptr<Output> shown, std::vector<SideOutput> beside);

} // namespace gpusnoop
