// SPDX-License-Identifier: Apache-2.0
// Which processes map CUDA: for hints, before there is anything that watches them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

struct CudaUsers {
    std::vector<pid_t> pids;
    bool all = true; // false: not all could be looked at in the time there was
};

// Of these. A helper looks, for a process can make whoever reads its mappings wait; nobody waits longer than a second.
CudaUsers cuda_users(std::span<const pid_t> of);

// Who uses CUDA now, for somebody who has asked for a process or a container by a name that is none. What cannot be
// found out is left out.

// "process 1234 (python3) maps CUDA", of those whose name contains this; empty where there is none.
std::string cuda_processes_named(std::string_view name);

// "these run a process that maps CUDA: pod:team/trainer, loader", in the words of -c.
std::string containers_with_cuda(const std::string& host_root);

// "a, b and 3 more": no more of them than that.
std::string listed(const std::vector<std::string>& texts, size_t most);

} // namespace gpusnoop
