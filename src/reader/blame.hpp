// SPDX-License-Identifier: Apache-2.0
// Processes and users whose files make helpers hang, crash or wait. The first crash over a file of a process is
// forgiven, as something else may have caused it. The next one blocks the process, and eight of them block its user.
#pragma once

#include "reader/wait_budget.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>

namespace gpusnoop {

class Blame {
public:
    using Clock = std::chrono::steady_clock;
    using FileKey = std::pair<uint64_t, uint64_t>; // device and inode, as /proc shows them; zeros: no file
    static constexpr unsigned strikes_max = 8;

    // consequence: of a blocked process; user_consequence: of a blocked user, if it differs. report: a sentence about
    // one of them; default: warn().
    explicit Blame(std::string consequence, std::string user_consequence = {},
                   std::function<void(std::string)> report = {});

    // The user of the process. Known after its exit if asked for before; else 0.
    uint64_t user_of(pid_t process);

    bool is_blocked(pid_t process);
    // Returns true for the first crash over this file of the process.
    bool forgive(pid_t process, const FileKey& file = {});
    // Returns false if the process is already blocked.
    bool block(pid_t process);
    // Reports the process with the file or other thing that cost a helper, and counts that against its user. An exited
    // process is not reported.
    void strike(pid_t process, uint64_t user, std::string_view what, std::string_view why);

    // A search for files of the user has blocked a helper for that long.
    void blocked_helper(uint64_t user, Clock::duration took, Clock::time_point now);
    // Returns true for a user whose files block helpers for long. Processes of other users come first. so_far: time
    // that a helper has been blocked by now.
    bool is_slow(uint64_t user, Clock::time_point now, Clock::duration so_far = {}) const;

private:
    struct Blocked {
        uint64_t start = 0; // of the process, as start_time_ns() has it
        Clock::time_point checked;
    };

    std::string consequence_, user_consequence_;
    std::function<void(std::string)> report_;
    std::map<pid_t, Blocked> blocked_;
    std::map<pid_t, uint64_t> users_; // of processes, exited ones included
    std::set<std::pair<pid_t, FileKey>> forgiven_;
    std::map<uint64_t, unsigned> strikes_;    // of users
    TimeAccounts<uint64_t> slow_of_user_{20}; // time that helpers were blocked
    TimeAccounts<int> slow_of_all_{5};
};

} // namespace gpusnoop
