// SPDX-License-Identifier: Apache-2.0
// The processes of -n: those that have, or have had, a thread whose name contains a text. A new thread has the name of
// the one that made it, so only what is told here can make a process one of them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

class NamedProcesses {
public:
    explicit NamedProcesses(std::string part) : part_(std::move(part)) {}

    const std::set<pid_t>& pids() const { return pids_; }
    bool contains(pid_t pid) const { return pids_.contains(pid); }

    // A thread of the process has been given this name. True where that makes the process one of them.
    bool named(pid_t pid, std::string_view name);
    // The child has the name of the thread that made it.
    bool forked(pid_t child);
    // It is another program, whose only thread has this name. True where it was one of them, and is none now.
    bool replaced(pid_t pid, std::string_view name);
    void left(pid_t pid) { pids_.erase(pid); }
    // All threads that there are.
    void look_again();

private:
    bool fits(std::string_view name) const { return name.find(part_) != std::string_view::npos; }

    std::string part_;
    std::set<pid_t> pids_;
};

} // namespace gpusnoop
