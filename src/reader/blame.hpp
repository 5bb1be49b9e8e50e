// SPDX-License-Identifier: Apache-2.0
// Tracks processes and users whose files make helpers hang, crash or wait. The first crash while a helper reads a file
// of a process is ignored, because the file may not be the cause. The next crash blocks the file or the process, and
// counts as a strike against the user who owns the process. Eight strikes block the user.
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
    using FileKey = std::pair<uint64_t, uint64_t>; // device and inode, as /proc shows them; zeros mean no file
    static constexpr unsigned strikes_max = 8;

    // consequence: end of the message about a blocked process, such as "its kernels have no names".
    // user_consequence: end of the message about a blocked user; if empty, consequence is used.
    // report: receives the messages; warn() by default.
    explicit Blame(std::string consequence, std::string user_consequence = {},
                   std::function<void(std::string)> report = {});

    // Returns the id of the user who owns the process, and remembers the id for calls after the process has exited.
    // Returns 0 if the process had exited before the first call.
    uint64_t user_of(pid_t process);

    bool is_blocked(pid_t process);
    // Call after a helper has crashed. Returns true if the crash should be ignored, because it is the first one that
    // this file of the process caused.
    bool forgive(pid_t process, const FileKey& file = {});
    // Blocks the process. Returns false if it is already blocked.
    bool block(pid_t process);
    // Counts a strike against the user, and reports the process unless it has exited. what: the file or other item that
    // the helper was reading. why: how the helper was lost.
    void strike(pid_t process, uint64_t user, std::string_view what, std::string_view why);

    // Records that files of the user blocked a helper for the time `took`.
    void blocked_helper(uint64_t user, Clock::duration took, Clock::time_point now);
    // Returns true if the user's files block helpers for a long time. Other users then have priority. so_far: time for
    // which a still pending request of this user has blocked a helper.
    bool is_slow(uint64_t user, Clock::time_point now, Clock::duration so_far = {}) const;

private:
    struct Blocked {
        uint64_t start = 0; // start_time_ns() of the process
        Clock::time_point checked;
    };

    std::string consequence_, user_consequence_;
    std::function<void(std::string)> report_;
    std::map<pid_t, Blocked> blocked_;
    std::map<pid_t, uint64_t> users_; // user of each process, including exited processes
    std::set<std::pair<pid_t, FileKey>> forgiven_;
    std::map<uint64_t, unsigned> strikes_;    // number of strikes against each user
    TimeAccounts<uint64_t> slow_of_user_{20}; // time for which each user's files have blocked helpers
    TimeAccounts<int> slow_of_all_{5};
};

} // namespace gpusnoop
