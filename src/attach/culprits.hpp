// SPDX-License-Identifier: Apache-2.0
// Who has cost helpers: processes whose mappings cannot be read in time, and users of whose files several were lost.
#pragma once

#include "attach/complaints.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <sys/types.h>
#include <utility>

namespace gpusnoop {

class Culprits {
public:
    static constexpr unsigned strikes_max = 8;

    explicit Culprits(Complaints& complaints) : complaints_(complaints) {}

    // Not looked at any more.
    bool include(pid_t pid) const;

    // A helper was lost over this (a path, or what else) of the process; tells so, and why.
    void strike(pid_t pid, std::string_view what, std::string_view why);
    // ... over its mappings.
    void hangs(pid_t pid);
    // A file as /proc shows it (device, inode), with which a helper has died: true the first time, for something else
    // may have ended that one.
    bool forgive(pid_t pid, std::pair<uint64_t, uint64_t> file) { return forgiven_.emplace(pid, file).second; }

private:
    Complaints& complaints_;
    std::set<std::pair<pid_t, uint64_t>> hanging_; // and their starts
    std::map<uint64_t, unsigned> strikes_;         // of each owner
    std::set<std::pair<pid_t, std::pair<uint64_t, uint64_t>>> forgiven_;
};

} // namespace gpusnoop
