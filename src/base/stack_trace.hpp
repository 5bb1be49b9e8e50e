// SPDX-License-Identifier: Apache-2.0
// What a BPF program has kept of a stack.
#pragma once

#include <cstdint>
#include <vector>

namespace gpusnoop {

// Addresses of code, innermost first; none where the id is negative, or not known. fd: of a map of stack traces.
std::vector<uint64_t> stack_trace(int fd, int32_t id);

} // namespace gpusnoop
