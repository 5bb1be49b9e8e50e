// SPDX-License-Identifier: Apache-2.0
#include "who/named_processes.hpp"

#include "proc/process.hpp"

#include <algorithm>

namespace gpusnoop {

bool NamedProcesses::named(pid_t pid, std::string_view name)
{
    return fits(name) && pids_.insert(pid).second;
}

bool NamedProcesses::forked(pid_t child)
{
    const auto name = process_name(child);
    return name && named(child, *name);
}

bool NamedProcesses::replaced(pid_t pid, std::string_view name)
{
    return !fits(name) && pids_.erase(pid);
}

void NamedProcesses::look_again()
{
    for (const pid_t pid : all_processes())
        if (!contains(pid) && std::ranges::any_of(thread_names(pid), [this](const auto& name) { return fits(name); }))
            pids_.insert(pid);
}

} // namespace gpusnoop
