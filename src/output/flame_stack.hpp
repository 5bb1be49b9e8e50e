// SPDX-License-Identifier: Apache-2.0
// A row with the frames below it, as a stack: whose it is, where in the program it happened, and what happened there.
#pragma once

#include "rows/output.hpp"

#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

// The outermost first: pod or cgroup where rows are by those, process, thread, frames, kernel or kind of call.
std::vector<std::string> flame_stack(std::span<const Column> columns, const Row& row, const ExtraLines& below);

// Of the kernel, as other tools mark such frames.
inline constexpr std::string_view kernel_mark = "_[k]";

} // namespace gpusnoop
