// SPDX-License-Identifier: Apache-2.0
#include "reader/reader.hpp"

#include "base/ending_signals.hpp"
#include "base/error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <poll.h>
#include <utility>
#include <vector>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds wait_step = 50ms; // interval of checks for a signal that ends the tool
constexpr auto process_allowance = 3s;                // time that helpers may spend on one process in a burst
constexpr auto user_allowance = 10s;                  // time that helpers may spend on one user in a burst
// Maximum time between two polls that counts towards hang_timeout. Polls are at most 1 s apart, so a longer gap means
// that the tool itself was stopped, for example by SIGSTOP.
constexpr auto max_tick_gap = 1500ms;
constexpr auto restart_interval = 1s; // minimum time between two starts of a helper
// Minimum time between starts after consecutive_deaths_max deaths, if Service::blames is false. An answer from a helper
// that has run for this long resets the count of deaths.
constexpr auto slow_restart_interval = 60s;
constexpr unsigned consecutive_deaths_max = 3;
// Up to this number of deaths, the next helper starts at once, so that other questions need not wait.
constexpr unsigned quick_restarts_max = 8;
constexpr auto second_helper_after = 50ms; // if a question has been pending this long, other questions use another
                                           // helper
constexpr long pending_of_user_max = 64;   // pending questions per user and helper; leaves room for other users
// Limited, because a helper that malicious data has taken over could send forever.
constexpr int messages_per_poll_max = 256;

// Reasons in messages about a helper that was replaced.
constexpr std::string_view died = "the helper that read it has died";
constexpr std::string_view sent_garbage = "the helper that read it sent an invalid answer";

} // namespace

Reader::Reader(Service service, WaitBudget* waits)
    : service_(std::move(service)), waits_(waits ? *waits : own_waits_),
      blame_(service_.consequence, service_.user_consequence, service_.report)
{
    processes_.resize(service_.processes);
}

Reader::~Reader() = default;

bool Reader::is_running() const
{
    return std::ranges::any_of(processes_, [](const Process& p) { return p.helper.has_value(); });
}

bool Reader::is_pending() const
{
    return next_pending() != nullptr;
}

const Reader::Question* Reader::next_pending() const
{
    const auto busy = std::ranges::find_if(processes_, [](const Process& p) { return !p.pending.empty(); });
    return busy != processes_.end() ? &busy->pending.front() : nullptr;
}

bool Reader::may_start(const Process& process) const
{
    const auto interval = !service_.blames && deaths_ >= consecutive_deaths_max ? Clock::duration(slow_restart_interval)
                                                                                : restart_interval;
    return (!process.has_started || service_.clock() >= process.started + interval) &&
           (service_.blames || !Child::is_left_behind(process.lost));
}

// Returns a helper that can accept a question, and starts a helper if needed. Returns null if no
// helper can accept one.
Reader::Process* Reader::free_process()
{
    const auto now = service_.clock();
    Process* absent = nullptr;
    Process* busy = nullptr;
    bool all_are_slow = true;
    for (Process& process : processes_) {
        if (process.helper && process.pending.empty())
            return &process;
        if (process.helper) {
            all_are_slow &= now - process.pending.front().since >= second_helper_after;
            if (!busy || process.pending.size() < busy->pending.size())
                busy = &process;
        } else if (!absent && may_start(process)) {
            absent = &process;
        }
    }
    if (absent && all_are_slow && start(*absent))
        return absent;
    return busy && busy->pending.size() < service_.questions ? busy : nullptr;
}

bool Reader::start(Process& process)
{
    process.started = service_.clock();
    process.has_started = true;
    const auto run = [this](Helper::Task& task) {
        if (service_.sandbox)
            enter_sandbox(*service_.sandbox);
        service_.serve(task);
    };
    process.helper.emplace(run);
    start_error_ = process.helper->error();
    if (!start_error_ && service_.watch)
        start_error_ = service_.watch(process.helper->connection().descriptor());
    if (start_error_ || process.helper->pid() <= 0)
        process.helper.reset();
    return process.helper.has_value();
}

std::optional<Reader::Sent> Reader::send(pid_t about, std::string_view question, int file)
{
    if (is_blocked(about))
        return std::nullopt;
    const Question asked{questions_ + 1, about, about ? blame_.user_of(about) : 0, service_.clock()};
    const auto is_of_user = [&](const Question& q) { return q.user == asked.user; };
    if (service_.limits_shares && about && (!has_share(asked) || std::ranges::any_of(processes_, [&](const Process& p) {
            return std::ranges::count_if(p.pending, is_of_user) >= pending_of_user_max;
        })))
        return std::nullopt;
    // If an idle helper has died, sending fails. No question can have caused that death, so the new question is sent to
    // another helper.
    for (size_t tries = 0; tries <= processes_.size(); tries++) {
        Process* const process = free_process();
        if (!process)
            return std::nullopt;
        if (process->helper->connection().send(question, file, true)) {
            if (process->pending.empty())
                process->checked = Clock::now();
            process->pending.push_back(asked);
            questions_++;
            return Sent{asked.number, process->helper->pid()};
        }
        if (!process->helper->connection().closed())
            return std::nullopt;
        poll(*process); // applies answers that the helper sent before its death
        const bool was_idle = process->helper && process->pending.empty();
        lose(*process, std::string(died));
        if (!was_idle)
            return std::nullopt;
    }
    return std::nullopt;
}

Reader::Outcome Reader::ask_or_post(pid_t about, std::string_view question)
{
    poll();
    if (!post(about, question))
        return Outcome::refused;
    const bool answered = wait();
    return answered ? Outcome::answered : is_running() ? Outcome::pending : Outcome::refused;
}

bool Reader::wait()
{
    poll();
    const auto begin = Clock::now();
    for (auto now = begin; const Question* const next = next_pending(); now = Clock::now()) {
        const Question question = *next;
        const auto left = waits_.left(question.about, question.user, now);
        if (left <= Clock::duration::zero() || (now - begin >= wait_step && ending_signal_pending()))
            break;
        wait_for_helpers(std::min<Clock::duration>(left, wait_step));
        waits_.use(question.about, question.user, Clock::now() - now, Clock::now());
        poll();
    }
    return is_running() && !is_pending();
}

bool Reader::wait_until(Clock::time_point deadline)
{
    poll();
    for (auto now = Clock::now(); is_pending() && now < deadline; now = Clock::now()) {
        wait_for_helpers(std::min<Clock::duration>(deadline - now, wait_step));
        poll();
    }
    return !is_pending();
}

void Reader::wait_for_helpers(Clock::duration timeout)
{
    std::vector<pollfd> busy;
    for (Process& process : processes_)
        if (!process.pending.empty())
            busy.push_back({process.helper->connection().descriptor(), POLLIN, 0});
    ::poll(busy.data(), busy.size(), static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(timeout).count()));
}

void Reader::poll()
{
    for (Process& process : processes_)
        poll(process);
}

void Reader::poll(Process& process)
{
    // If the caller's epoll watches the helpers, idle helpers are polled, too, because epoll reports a dead helper
    // again and again until it is replaced.
    const auto has_news = [&] { return process.helper && (!process.pending.empty() || service_.watch); };
    for (int messages = 0; messages < messages_per_poll_max && has_news(); messages++) {
        auto message = process.helper->connection().receive(0ms);
        if (message) {
            if (!apply(process, std::move(*message)))
                return lose(process,
                            std::string(process.helper && process.helper->connection().closed() ? died : sent_garbage));
            continue;
        }
        if (process.helper->connection().closed())
            return lose(process, std::string(died));
        if (process.pending.empty())
            return;
        const auto now = Clock::now();
        process.silent += std::min<Clock::duration>(now - std::exchange(process.checked, now), max_tick_gap);
        if (process.silent > service_.hang_timeout)
            lose(process, fmt::format("it cannot be read within {} s",
                                      std::chrono::duration_cast<std::chrono::seconds>(service_.hang_timeout).count()));
        return;
    }
}

// Applies a message to the first pending question. Returns false if the message is invalid.
bool Reader::apply(Process& process, Message message)
{
    if (process.pending.empty())
        return false;
    const Clock::duration took = std::exchange(process.silent, {});
    const Question question = process.pending.front();
    process.checked = Clock::now();
    charge(question, took);
    if (service_.apply) {
        process.pending.pop_front(); // first, because apply() may ask another question
        if (!service_.apply(std::move(message))) {
            if (process.helper)
                process.pending.push_front(question); // so that lose() blames the process that the question is about
            return false;
        }
    } else {
        const Reply reply = service_.apply_part({question.number, std::move(message), process.helper->connection()});
        if (reply != Reply::complete)
            return reply == Reply::partial;
        process.pending.pop_front();
    }
    if (service_.clock() >= process.started + slow_restart_interval)
        deaths_ = 0;
    return true;
}

bool Reader::has_share(const Question& question) const
{
    const auto now = Clock::now();
    return of_user_.empty() || (of_process_.used(question.about, now) < process_allowance &&
                                of_user_.used(question.user, now) < user_allowance);
}

// took: time from the question, or from the helper's previous message, to the last poll that found no message. The time
// after that poll is not charged, because the message may have waited while the tool was busy with other work.
void Reader::charge(const Question& question, Clock::duration took)
{
    constexpr auto negligible = 5ms;
    if (!service_.limits_shares || question.about == 0 || took < negligible)
        return;
    const auto now = Clock::now();
    of_process_.use(question.about, took, now);
    of_user_.use(question.user, took, now);
}

void Reader::retire_idle()
{
    for (Process& process : processes_)
        if (process.helper && process.pending.empty()) {
            process.helper.reset();
            process.has_started = false;
        }
}

void Reader::end(Process& process)
{
    process.pending.clear();
    process.silent = {};
    process.lost = process.helper->pid();
    process.helper.reset();
    if (service_.restarted)
        service_.restarted();
}

void Reader::lose(Process& process, std::string why)
{
    if (!process.helper)
        return;
    Loss loss{.died = why == died, .status = process.helper->status(), .why = std::move(why)};
    if (!process.pending.empty()) {
        loss.question = process.pending.front().number;
        loss.about = process.pending.front().about;
        loss.user = process.pending.front().user;
    }
    if (loss.died && !service_.blames)
        deaths_++;
    end(process);
    if (service_.blames && (loss.question == 0 || (loss.died && deaths_++ < quick_restarts_max)))
        process.has_started = false; // the next helper starts at once
    if (!(service_.lost && service_.lost(loss)) && loss.question && service_.blames)
        blame(loss);
}

void Reader::blame(const Loss& loss)
{
    if (loss.about == 0) {
        if (!std::exchange(reported_, true))
            warn(fmt::format("{}{}{}; {}", loss.status, loss.status.empty() ? "" : ": ", loss.why,
                             service_.consequence));
        return;
    }
    if (!(loss.died && blame_.forgive(loss.about)) && blame_.block(loss.about))
        blame_.strike(loss.about, loss.user, loss.status, loss.why);
}

} // namespace gpusnoop
