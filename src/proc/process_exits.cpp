// SPDX-License-Identifier: Apache-2.0
#include "proc/process_exits.hpp"

#include "proc/running_thread.hpp"

namespace gpusnoop {

// One running thread is remembered, and its exit awaited, so that a process with many threads is not searched for
// others at the exit of each. The kernel reports an exit after it has marked the thread as exiting (do_exit()):
// whatever ran when it was remembered is reported later.
ProcessExits::Exit ProcessExits::thread_exited(pid_t pid, pid_t tid)
{
    const auto known = last_running_.find(pid);
    if (tid != pid && (known == last_running_.end() || known->second != tid))
        return Exit::thread;
    const auto running = running_thread(pid);
    if (running && running != pid) {
        const bool is_new = last_running_.insert_or_assign(pid, *running).second;
        return is_new ? Exit::main_thread : Exit::thread;
    }
    last_running_.erase(pid);
    return !running ? Exit::process : tid == pid ? Exit::replaced : Exit::thread;
}

bool ProcessExits::executed(pid_t pid)
{
    return last_running_.erase(pid) > 0;
}

std::set<pid_t> ProcessExits::missed()
{
    std::set<pid_t> exited;
    for (auto known = last_running_.begin(); known != last_running_.end();) {
        const auto running = running_thread(known->first);
        if (!running)
            exited.insert(known->first);
        if (running && running != known->first)
            (known++)->second = *running;
        else
            known = last_running_.erase(known);
    }
    return exited;
}

} // namespace gpusnoop
