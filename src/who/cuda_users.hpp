// SPDX-License-Identifier: Apache-2.0
// Which processes map CUDA: for hints, before there is anything that watches them.
#pragma once

#include <span>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

struct CudaUsers {
    std::vector<pid_t> pids;
    bool all = true; // false: not all could be looked at in the time there was
};

// Of these. A helper looks, for a process can make whoever reads its mappings wait; nobody waits longer than a second.
CudaUsers cuda_users(std::span<const pid_t> of);

} // namespace gpusnoop
