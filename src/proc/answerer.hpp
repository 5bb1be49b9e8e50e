// SPDX-License-Identifier: Apache-2.0
// A helper that answers questions about processes. Whoever asks waits for as long as can be borne; an answer that comes
// later is taken when it comes. A helper that hangs or dies is replaced, and what it was asked about is asked no more:
// first of that process, then of its user.
#pragma once

#include "util/helper.hpp"
#include "util/time_accounts.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>

namespace gpusnoop {

class Answerer {
public:
    struct Work {
        std::function<void(Helper::Task&)> serve; // in the helper, its whole life: one message for each that it gets
        std::function<bool(Message)> take;        // an answer; false where it is none
        std::function<void()> begun_anew = {};    // what the helper had been told is lost
        std::string consequence = {};             // for who is asked about no more: "its kernels have no names"
    };
    // The helper begins with the first question.
    explicit Answerer(Work work) : work_(std::move(work)) {}

    // True where the answer has been taken. about: the process that decides how long that takes, or 0.
    bool ask(pid_t about, std::string_view question);
    // The same, without waiting. False where the question is not asked, as none is for now.
    bool post(pid_t about, std::string_view question, int file = -1);
    // Takes what has come. To be called now and then.
    void hear();

    bool barred(pid_t about) const;

private:
    using Clock = std::chrono::steady_clock;

    bool begin();
    bool patient_with(pid_t about, Clock::time_point now) const;
    void spend(pid_t about, Clock::duration took, Clock::time_point now);
    void lose(pid_t about, std::string_view why);
    void bar(pid_t about, std::string_view at, std::string_view why);

    Work work_;
    std::optional<Helper> helper_;
    std::deque<pid_t> asked_; // about whom, of the questions without an answer yet; it is at the first of them
    bool late_ = false;       // with an answer that somebody has waited for
    Clock::time_point looked_at_;
    Clock::duration silent_{};
    Clock::time_point next_begin_; // where none could be begun

    TimeAccounts<pid_t> of_process_{20};
    TimeAccounts<uint64_t> of_owner_{5};
    std::set<std::pair<pid_t, uint64_t>> barred_, forgiven_; // processes, and their starts
    std::map<uint64_t, unsigned> strikes_;                   // owners: helpers that they have cost
    bool told_ = false;                                      // of one that was lost about nobody in particular
};

} // namespace gpusnoop
