// SPDX-License-Identifier: Apache-2.0
// Numbers that each CPU counts for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusnoop {

// The first so many of a per-CPU array, each added up over all CPUs, by one call; 0 where they cannot be read.
std::vector<uint64_t> cpu_sums(int map_fd, size_t entries);

} // namespace gpusnoop
