// SPDX-License-Identifier: Apache-2.0
// Helper that answers questions about processes. Callers wait within the loop's budget; a later answer is taken when it
// arrives. A helper that hangs or dies is replaced, and the process that caused it is blocked, then its user.
#pragma once

#include "base/time_accounts.hpp"
#include "reader/helper.hpp"
#include "reader/wait_budget.hpp"

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
    // The helper is started by the first question. waits: shared by the helpers of one loop; null: its own.
    explicit Answerer(Work work, WaitBudget* waits = nullptr)
        : work_(std::move(work)), waits_(waits ? *waits : own_waits_)
    {}
    Answerer(const Answerer&) = delete;
    Answerer& operator=(const Answerer&) = delete;

    enum class Outcome : uint8_t {
        answered,
        pending, // the question was sent; its answer arrives later
        refused, // not sent: the process is blocked or has used its share of the helper, or too many are pending
    };
    // about: the process that decides how long the answer takes, or 0.
    Outcome ask_or_post(pid_t about, std::string_view question);
    // Returns true if the answer has been taken.
    bool ask(pid_t about, std::string_view question) { return ask_or_post(about, question) == Outcome::answered; }
    // Does not wait. Returns false if the question was refused.
    bool post(pid_t about, std::string_view question, int file = -1);
    // Takes the answers that have arrived. To be called now and then.
    void hear();
    // Returns true if no question is pending; waits for the answers as ask() does.
    bool wait();
    // The same, but waits until this time. For the end of a run, which has a budget of its own.
    bool wait_until(std::chrono::steady_clock::time_point deadline);
    bool pending() const { return !asked_.empty(); }

    // It is asked about no more.
    bool barred(pid_t about);

private:
    using Clock = std::chrono::steady_clock;
    struct Asked {
        pid_t about;
        uint64_t user; // that the process belongs to
    };

    bool begin();
    void end();
    bool bar(pid_t about);
    bool has_share(const Asked& asked) const;
    void charge(const Asked& asked, Clock::duration took);
    void poll_helper(Clock::duration longest);
    void lose(pid_t about, std::string_view why);
    void blame(pid_t about, std::string_view at, std::string_view why);

    Work work_;
    WaitBudget own_waits_;
    WaitBudget& waits_;
    std::optional<Helper> helper_;
    std::deque<Asked> asked_; // pending questions; the helper works on the first one
    Clock::time_point looked_at_;
    Clock::duration silent_{};     // that the first pending question has taken
    Clock::time_point next_begin_; // of another helper

    TimeAccounts<pid_t> of_process_{20}; // time of the helper
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
