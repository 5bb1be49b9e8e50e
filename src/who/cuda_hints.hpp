// SPDX-License-Identifier: Apache-2.0
// Who uses CUDA now, for somebody who has asked for a process or a container by a name that is none. What cannot be
// found out is left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// "process 1234 (python3) maps CUDA", of those whose name contains this; empty where there is none.
std::string cuda_processes_named(std::string_view name);

// "these run a process that maps CUDA: pod:team/trainer, loader", in the words of -c.
std::string containers_with_cuda(const std::string& host_root);

// "a, b and 3 more": no more of them than that.
std::string listed(const std::vector<std::string>& texts, size_t most);

} // namespace gpusnoop
