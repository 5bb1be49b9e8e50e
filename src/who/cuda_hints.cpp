// SPDX-License-Identifier: Apache-2.0
#include "who/cuda_hints.hpp"

#include "base/privileges.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"
#include "who/cuda_users.hpp"
#include "who/processes.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <set>
#include <vector>

namespace gpusnoop {
namespace {

// As -c takes it; empty where the process is in none.
std::string container_of(const Owner& owner)
{
    if (!owner.names.pod.empty() && !owner.names.pod_namespace.empty())
        return fmt::format("pod:{}/{}", owner.names.pod_namespace, owner.names.pod);
    return owner.container() ? owner.container_name() : std::string();
}

} // namespace

std::string listed(const std::vector<std::string>& texts, size_t most)
{
    if (texts.size() <= most)
        return joined(texts, ", ");
    return fmt::format("{} and {} more", joined(std::span(texts).first(most), ", "), texts.size() - most);
}

std::string cuda_processes_named(std::string_view name)
{
    constexpr size_t named_max = 4;
    std::vector<pid_t> pids = all_processes();
    std::erase_if(pids, [name](pid_t pid) { return process_name(pid).value_or("").find(name) == std::string::npos; });
    std::vector<std::string> found;
    for (const pid_t pid : cuda_users(pids).pids)
        found.push_back(fmt::format("{} ({})", pid, process_name(pid).value_or("ended")));
    if (found.empty())
        return {};
    return fmt::format("process{} {} map{} CUDA", found.size() == 1 ? "" : "es", listed(found, named_max),
                       found.size() == 1 ? "s" : "");
}

std::string containers_with_cuda(const std::string& host_root)
{
    constexpr size_t named_max = 8;
    if (!has_capability(CAP_SYS_PTRACE)) // most mappings cannot be read
        return {};
    const CudaUsers users = cuda_users(all_processes());
    Processes processes(-1, host_root);
    std::set<std::string> found;
    for (const pid_t pid : users.pids)
        if (std::string name = container_of(processes.owner(processes.meet(static_cast<uint32_t>(pid)), {}));
            !name.empty())
            found.insert(std::move(name));
    if (found.empty())
        return users.all ? "no container runs a process that maps CUDA" : "";
    return "these run a process that maps CUDA: " + listed({found.begin(), found.end()}, named_max);
}

} // namespace gpusnoop
