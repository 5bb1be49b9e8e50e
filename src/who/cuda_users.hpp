// SPDX-License-Identifier: Apache-2.0
// Search for processes that have CUDA libraries mapped, for hints in messages before tracing starts.
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

// Returns the processes among `pids` that map CUDA. A helper process reads the mappings, for at most a second, because
// a process can block readers of its mappings.
CudaUsers cuda_users(std::span<const pid_t> pids);

// Hints for messages about a process or container that does not exist.

// "process 1234 (python3) maps CUDA", for processes whose names contain `name`; empty if there are none.
std::string cuda_processes_named(std::string_view name);

// "containers with processes that map CUDA: pod:team/trainer, loader". The names have the form that -c accepts.
std::string containers_with_cuda(const std::string& host_root);

// Joins texts as in "a, b and 3 more". At most `max` texts are shown.
std::string listed(const std::vector<std::string>& texts, size_t max);

} // namespace gpusnoop
