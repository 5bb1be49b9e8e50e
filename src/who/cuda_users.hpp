// SPDX-License-Identifier: Apache-2.0
// Finds the processes that map CUDA, for hints in messages before tracing starts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

struct CudaUsers {
    std::vector<pid_t> pids;
    bool complete = true; // false if there was not enough time to inspect all processes
};

// Those of `pids` that map CUDA. A helper reads the mappings, for at most a second, because a process can make the
// reader of its mappings wait.
CudaUsers cuda_users(std::span<const pid_t> pids);

// Hints about a process or container that does not exist. Unknown facts are left out.

// "process 1234 (python3) maps CUDA", for processes whose name contains `name`; empty if there are none.
std::string cuda_processes_named(std::string_view name);

// "containers with processes that map CUDA: pod:team/trainer, loader", as -c accepts them.
std::string containers_with_cuda(const std::string& host_root);

// "a, b and 3 more", with at most `max` texts.
std::string listed(const std::vector<std::string>& texts, size_t max);

} // namespace gpusnoop
