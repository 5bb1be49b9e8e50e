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

    // With one answer. Sanitizers take several times as long for the same.
#ifdef __SANITIZE_ADDRESS__
    static constexpr std::chrono::milliseconds patience{2800};
#else
    static constexpr std::chrono::milliseconds patience{700};
#endif

    // True where the answer has been taken. about: the process that decides how long that takes, or 0.
    bool ask(pid_t about, std::string_view question);
    // The same, without waiting. False where it is not asked: there are too many questions that wait for an answer, or
    // the process has had its share of time.
    bool post(pid_t about, std::string_view question, int file = -1);
    // Takes what has come. To be called now and then.
    void hear();
    // All that was asked has its answer; waits for it as ask() does.
    bool wait();

    // It is asked about no more.
    bool barred(pid_t about);

private:
    using Clock = std::chrono::steady_clock;

    bool begin();
    void end();
    bool send(pid_t about, std::string_view question, int file);
    bool allowed(pid_t about);
    bool bar(pid_t about);
    void spend(pid_t about);
    void lose(pid_t about, std::string_view why);
    void blame(pid_t about, std::string_view at, std::string_view why);

    Work work_;
    std::optional<Helper> helper_;
    std::deque<pid_t> asked_; // about whom, of the questions without an answer yet; it is at the first of them
    bool late_ = false;       // with an answer that somebody has waited for
    Clock::time_point looked_at_;
    Clock::duration silent_{};
    Clock::time_point next_begin_;                  // of another helper
    std::optional<Clock::time_point> waited_since_; // for the first of the questions, or since the answer before

    TimeAccounts<pid_t> of_process_{20};
    TimeAccounts<uint64_t> of_owner_{5};
    struct Barred {
        uint64_t start = 0; // of the process, as start_time_ns() has it
        Clock::time_point looked_at;
    };
    std::map<pid_t, Barred> barred_;
    std::set<uint64_t> forgiven_;          // owners: a helper has died of one of their processes
    std::map<uint64_t, unsigned> strikes_; // owners: helpers that they have cost
    bool told_ = false;                    // of one that was lost about nobody in particular
};

} // namespace gpusnoop
