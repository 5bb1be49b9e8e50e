// SPDX-License-Identifier: Apache-2.0
// Pool of sandboxed helper processes that answer questions, mostly about target processes. Callers wait for an answer
// only as long as the budget of the event loop allows. A later answer is applied when it arrives. If a helper hangs or
// dies, it is replaced, and the process that the question was about is blocked.
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
        partial, // more messages of the answer follow
        invalid, // the message is malformed, so the helper is replaced
    };
    struct Part {
        uint64_t question; // number that send() returned
        Message message;
        Connection& helper;
    };
    struct Loss {
        uint64_t question = 0; // number of the question that the helper was answering; 0 if it was idle
        pid_t about = 0;       // process that the question is about; 0 if none
        uint64_t user = 0;     // user who owns that process
        bool died = false;     // false if the helper hung or sent an invalid message
        std::string status{};
        std::string why{};
    };
    // Definition of the helpers. Must have serve, and either apply or apply_part.
    struct Service {
        // Sandbox that the helper enters before it calls serve. nullopt if serve itself enters one (see
        // serve_in_sandbox()), or if no sandbox is used.
        std::optional<Sandbox> sandbox{};
        std::function<void(Helper::Task&)> serve; // main function of the helper
        std::function<bool(Message)> apply{};     // applies a one-message answer; returns false if it is malformed
        std::function<Reply(Part)> apply_part{};  // applies one message of an answer that may have several messages
        // Called after a helper was lost. The caller should reset its own state, because the helper's state and its
        // pending questions are lost, too.
        std::function<void()> restarted{};
        // Called after restarted(), with the cause of the loss. Returns true if the pool should blame no process.
        std::function<bool(const Loss&)> lost{};
        std::function<int(int descriptor)>
            watch{}; // adds a new helper to the caller's epoll instance; returns 0 or errno
        // See Blame::Blame().
        std::string consequence{};
        std::string user_consequence{};
        std::function<void(std::string)> report{};
        std::function<Clock::time_point()> clock = Clock::now;
        Clock::duration hang_timeout = default_hang_timeout; // maximum time without a message from a busy helper
        size_t processes = 1;      // maximum number of helpers; another one is started if all running ones are slow
        size_t questions = 128;    // maximum number of pending questions per helper
        bool limits_shares = true; // limit the helper time spent on each process and on each user
        // If false, no process is blamed. A new helper is then started only after the previous one has exited and,
        // after three consecutive deaths, at most once a minute.
        bool blames = true;
    };

    // Starts no helper until one is needed. waits: budget that all readers of an event loop share; if null, this reader
    // has its own.
    explicit Reader(Service service, WaitBudget* waits = nullptr);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    enum class Outcome : uint8_t {
        answered,
        pending, // the question was sent; its answer arrives later
        refused, // not sent: the process is blocked, its helper time is used up, or no helper can take a question
    };
    // about: process that the question is about, 0 if none. Time spent waiting for the answer is charged to this
    // process.
    Outcome ask_or_post(pid_t about, std::string_view question);
    // Returns true if the answer has been applied.
    bool ask(pid_t about, std::string_view question) { return ask_or_post(about, question) == Outcome::answered; }
    // Sends the question without waiting for the answer. Returns false if the question was refused.
    bool post(pid_t about, std::string_view question, int file = -1) { return send(about, question, file).has_value(); }
    struct Sent {
        uint64_t question; // sequence number of the question, from 1
        pid_t helper;
    };
    std::optional<Sent> send(pid_t about, std::string_view question, int file = -1);
    // Returns true if a helper can take another question. Starts a helper if needed.
    bool is_ready() { return free_process() != nullptr; }

    // Applies the answers that have arrived and replaces helpers that hang. Call it at least once a second.
    void poll();
    // Waits for the pending answers as long as the budget allows. Returns true if all have arrived.
    bool wait();
    // Waits for the pending answers until the deadline, regardless of the budget.
    bool wait_until(std::chrono::steady_clock::time_point deadline);
    bool is_pending() const;

    bool is_blocked(pid_t about) { return blame_.is_blocked(about); }
    // Remembers the user who owns the process, so that questions sent after the process has exited are charged to that
    // user.
    void remember(pid_t about) { blame_.user_of(about); }
    Blame& blame() { return blame_; }

    // Ends idle helpers, so that the next questions go to new helpers. A helper works on a copy of the tool's state,
    // made when the helper was started.
    void retire_idle();
    bool is_running() const;                         // true if there is any helper
    int start_error() const { return start_error_; } // errno of the last attempt to start a helper; 0 if it succeeded
    unsigned consecutive_deaths() const { return deaths_; } // valid only if Service::blames is false

private:
    struct Question {
        uint64_t number;
        pid_t about;
        uint64_t user; // user who owns that process
        Clock::time_point since;
    };
    struct Process {
        std::optional<Helper> helper;
        std::deque<Question> pending; // the helper works on the first one
        Clock::time_point started, checked;
        bool has_started = false;
        pid_t lost = -1;          // process id of the previous helper, which was lost
        Clock::duration silent{}; // time since the last message, while the first question is pending
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
    void wait_for_helpers(Clock::duration timeout);
    void lose(Process& process, std::string why);
    void blame(const Loss& loss);

    Service service_;
    WaitBudget own_waits_;
    WaitBudget& waits_;
    Blame blame_;
    std::list<Process> processes_;
    uint64_t questions_ = 0; // number of questions sent so far
    unsigned deaths_ = 0;
    int start_error_ = 0;
    bool reported_ = false; // true once the loss of a helper was reported for which no process can be blamed

    TimeAccounts<pid_t> of_process_{20}; // helper time used for questions about each process
    TimeAccounts<uint64_t> of_user_{5};
};

// Returns a Service::serve function for a class that answers questions. The object is constructed before the sandbox is
// entered, because the sandbox forbids memfds.
template<class Search>
std::function<void(Helper::Task&)> serve_in_sandbox(auto... arguments)
{
    return [=](Helper::Task& task) {
        Search search(arguments...);
        enter_sandbox(process_reading_sandbox(Search::memory_bytes));
        search.serve(task);
    };
}

// Transfer of answers that are too long for one message.

// Sends an answer from the helper to the tool in parts. Returns false if the tool has exited.
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

// Joins the parts of an answer, up to a maximum size. Used by the tool, which receives the parts from a helper. One
// object joins many answers, one after the other.
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
    // Returns the joined answer and prepares for the next answer.
    std::string extract() { return std::exchange(bytes_, {}); }

private:
    size_t bytes_max_;
    std::string bytes_;
};

} // namespace gpusnoop
