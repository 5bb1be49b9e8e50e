// SPDX-License-Identifier: Apache-2.0
// Pool of sandboxed helpers that answer questions, mostly about processes. Callers wait within the loop's budget; a
// later answer is applied when it arrives. A helper that hangs or dies is replaced, and the process that caused it is
// blocked.
#pragma once

#include "reader/blame.hpp"
#include "reader/helper.hpp"
#include "reader/sandbox.hpp"
#include "reader/wait_budget.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>

namespace gpusnoop {

class Reader {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds default_hang_timeout{3};

    enum class Reply : uint8_t {
        complete,
        partial, // more messages follow
        invalid, // the helper is replaced
    };
    struct Part {
        uint64_t question; // as send() returned it
        Message message;
        Connection& helper;
    };
    struct Loss {
        uint64_t question = 0; // that the helper worked on; 0: it was idle
        pid_t about = 0;
        uint64_t user = 0; // of that process
        bool died = false; // else it hung, or sent something invalid
        std::string status{};
        std::string why{};
    };
    // What the helpers do. Only serve and either apply or apply_part are needed.
    struct Service {
        std::optional<Sandbox> sandbox{};           // entered before serve; nullopt: none, or serve_in_sandbox()
        std::function<void(Helper::Task&)> serve;   // in the helper, its whole life
        std::function<bool(Message)> apply{};       // takes the one message of an answer; false if it is malformed
        std::function<Reply(Part)> apply_part{};    // the same where an answer takes several messages
        std::function<void()> restarted{};          // pending questions and what the helper had learned are lost
        std::function<bool(const Loss&)> lost{};    // true: no process is to be blamed
        std::function<int(int descriptor)> watch{}; // adds a new helper to the caller's epoll; returns errno
        std::string consequence{};                  // of a blocked process: "its kernels have no names"
        std::string user_consequence{};             // of a blocked user, if it differs
        std::function<void(std::string)> report{};  // default: warn()
        std::function<Clock::time_point()> clock = Clock::now;
        Clock::duration hang_timeout = default_hang_timeout; // without a message
        size_t processes = 1;                                // at most; another one is started while all are slow
        size_t questions = 128;                              // pending ones per helper
        bool limits_shares = true;                           // of the helpers' time, per process and per user
        // False: after three deaths in a row, a helper is started once a minute, and none is while the last one cannot
        // be killed.
        bool blames = true;
    };

    // Helpers start with the first question. waits: shared by the readers of one loop; null: its own.
    explicit Reader(Service service, WaitBudget* waits = nullptr);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    enum class Outcome : uint8_t {
        answered,
        pending, // the question was sent; its answer arrives later
        refused, // not sent: the process is blocked or has used its share of the helper, or too many are pending
    };
    // about: the process that decides how long the answer takes, or 0.
    Outcome ask_or_post(pid_t about, std::string_view question);
    // Returns true if the answer has been applied.
    bool ask(pid_t about, std::string_view question) { return ask_or_post(about, question) == Outcome::answered; }
    // Does not wait. Returns false if the question was refused.
    bool post(pid_t about, std::string_view question, int file = -1) { return send(about, question, file).has_value(); }
    struct Sent {
        uint64_t question; // counts up from 1
        pid_t helper;
    };
    std::optional<Sent> send(pid_t about, std::string_view question, int file = -1);
    // Returns true if a helper takes another question, and starts one if that is needed.
    bool is_ready() { return free_process() != nullptr; }

    // Applies the answers that have arrived and replaces helpers that hang. To be called at least once a second.
    void poll();
    // Returns true if no question is pending; waits for the answers as ask() does.
    bool wait();
    // The same, but waits until this time, whatever the budget is.
    bool wait_until(std::chrono::steady_clock::time_point deadline);
    bool is_pending() const;

    bool is_blocked(pid_t about) { return blame_.is_blocked(about); }
    // Keeps the user of the process, for questions after its exit.
    void remember(pid_t about) { blame_.user_of(about); }
    Blame& blame() { return blame_; }

    // Idle helpers end; the next ones know what this process knows by then.
    void retire_idle();
    bool is_running() const;                                // any helper
    int start_error() const { return start_error_; }        // errno of the last start; 0: it succeeded
    unsigned consecutive_deaths() const { return deaths_; } // if nothing is blamed for them

private:
    struct Question {
        uint64_t number;
        pid_t about;
        uint64_t user; // that the process belongs to
        Clock::time_point since;
    };
    struct Process {
        std::optional<Helper> helper;
        std::deque<Question> pending; // the helper works on the first one
        Clock::time_point started, checked;
        bool has_started = false;
        pid_t lost = -1;          // the helper before this one
        Clock::duration silent{}; // that the first pending question has taken
    };

    Process* free_process();
    bool may_start(const Process& process) const;
    bool start(Process& process);
    void end(Process& process);
    void poll(Process& process);
    bool apply(Process& process, Message message);
    const Question* next_pending() const;
    bool has_share(const Question& question) const;
    void charge(const Question& question, Clock::duration took);
    void wait_for_helpers(Clock::duration longest);
    void lose(Process& process, std::string why);
    void blame(const Loss& loss);

    Service service_;
    WaitBudget own_waits_;
    WaitBudget& waits_;
    Blame blame_;
    std::list<Process> processes_;
    uint64_t questions_ = 0; // so far
    unsigned deaths_ = 0;
    int start_error_ = 0;
    bool reported_ = false; // a loss about no process

    TimeAccounts<pid_t> of_process_{20}; // time of the helpers
    TimeAccounts<uint64_t> of_user_{5};
};

// Service::serve of a class that answers questions. Constructs it before the sandbox, which forbids files in memory.
template<class Search>
std::function<void(Helper::Task&)> serve_in_sandbox(auto... arguments)
{
    return [=](Helper::Task& task) {
        Search search(arguments...);
        enter_sandbox(process_reading_sandbox(Search::memory_bytes));
        search.serve(task);
    };
}

// Answers that are too long for one message: sent in parts, put together again up to a bound.

// In the helper. False if its owner has gone.
inline bool send_in_parts(Connection& owner, std::string_view bytes)
{
    constexpr size_t part_max = Connection::message_max - 1;
    do {
        const std::string_view part = bytes.substr(0, part_max);
        bytes.remove_prefix(part.size());
        if (!owner.send((bytes.empty() ? "." : "+") + std::string(part)))
            return false;
    } while (!bytes.empty());
    return true;
}

// In its owner: the parts of one answer at a time.
class JoinedParts {
public:
    explicit JoinedParts(size_t bytes_max) : bytes_max_(bytes_max) {}

    Reader::Reply add(std::string_view message)
    {
        const bool is_last = message.starts_with('.');
        if ((!is_last && !message.starts_with('+')) || bytes_.size() + message.size() - 1 > bytes_max_)
            return Reader::Reply::invalid;
        bytes_ += message.substr(1);
        return is_last ? Reader::Reply::complete : Reader::Reply::partial;
    }
    // The whole answer; the next one begins.
    std::string extract() { return std::exchange(bytes_, {}); }

private:
    size_t bytes_max_;
    std::string bytes_;
};

} // namespace gpusnoop
