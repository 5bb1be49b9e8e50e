// SPDX-License-Identifier: Apache-2.0
// A process and those that descend from it, as forks are told: by CPU, so that a grandchild's may come before its
// parent's own.
#pragma once

#include <map>
#include <set>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

class Descendants {
public:
    explicit Descendants(pid_t first) : all_{first} {}

    // Those that are known to be descendants now: the child, and those that were told of before it.
    std::vector<pid_t> forked(pid_t child, pid_t parent);
    bool contains(pid_t pid) const { return all_.contains(pid); }
    void left(pid_t pid) { all_.erase(pid); }
    // What has been told by now and fits nobody is of others.
    void forget_others() { of_others_.clear(); }

private:
    static constexpr size_t others_max = 65536; // within a second

    std::set<pid_t> all_;
    std::multimap<pid_t, pid_t> of_others_; // by parent
};

} // namespace gpusnoop
