// SPDX-License-Identifier: Apache-2.0
#include "reader/answerer.hpp"

#include "base/ending_signals.hpp"
#include "base/error.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <poll.h>
#include <utility>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds step = 50ms; // between checks for an ending signal
constexpr auto process_allowance = 3s;           // time of the helper for one process, at once
constexpr auto owner_allowance = 10s;            // the same for one user
constexpr auto hang_timeout = 3s;                // without a word
constexpr auto max_tick_gap = 1500ms;            // ticks are a second apart; beyond that, this process was stopped
constexpr auto restart_interval = 1s;
constexpr size_t pending_max = 128;     // questions without an answer
constexpr long pending_of_one_max = 64; // the same, of one user: others find room
constexpr auto barred_for_sure = 1s;    // then the process is compared again with the one that was blocked
constexpr unsigned strikes_max = 8;

// Why a helper is replaced.
constexpr std::string_view hangs = "it cannot be read within 3 s";
constexpr std::string_view died = "the helper that read it has died";
constexpr std::string_view astray = "the helper that read it gives no answers any more, but something else";

} // namespace

bool Answerer::barred(pid_t about)
{
    if (about == 0 || (barred_.empty() && strikes_.empty()))
        return false;
    const auto now = Clock::now();
    if (const auto known = barred_.find(about); known != barred_.end()) {
        if (now - known->second.looked_at < barred_for_sure)
            return true;
        known->second.looked_at = now;
        if (known->second.start == start_time_ns(about))
            return true;
        barred_.erase(known);
    }
    const auto strikes = strikes_.find(owner_of(about).value_or(0));
    if (strikes == strikes_.end() || strikes->second < strikes_max)
        return false;
    bar(about);
    return true;
}

bool Answerer::bar(pid_t about)
{
    std::erase_if(barred_, [](const auto& entry) { return !is_alive(entry.first); });
    return barred_.insert_or_assign(about, Barred{start_time_ns(about), Clock::now()}).second;
}

bool Answerer::begin()
{
    const auto now = Clock::now();
    if (helper_ || now < next_begin_)
        return helper_.has_value();
    next_begin_ = now + restart_interval;
    helper_.emplace(work_.serve);
    if (helper_->pid() <= 0)
        helper_.reset();
    return helper_.has_value();
}

bool Answerer::post(pid_t about, std::string_view question, int file)
{
    if (barred(about) || asked_.size() >= pending_max)
        return false;
    const Asked asked{about, about ? owner_of(about).value_or(0) : 0};
    if (about && (!has_share(asked) || std::ranges::count(asked_, asked.user, &Asked::user) >= pending_of_one_max))
        return false;
    // The end of an idle helper has no culprit.
    for (int tries = 0; tries < 2 && begin(); tries++) {
        if (helper_->connection().send(question, file, true)) {
            if (asked_.empty())
                looked_at_ = Clock::now();
            asked_.push_back(asked);
            return true;
        }
        if (!helper_->connection().closed())
            return false;
        if (!asked_.empty()) {
            lose(asked_.front().about, died);
            return false;
        }
        end();
    }
    return false;
}

Answerer::Outcome Answerer::ask_or_post(pid_t about, std::string_view question)
{
    hear();
    if (!post(about, question))
        return Outcome::refused;
    const bool answered = wait();
    return answered ? Outcome::answered : helper_ ? Outcome::pending : Outcome::refused;
}

bool Answerer::wait()
{
    hear();
    const auto begun = Clock::now();
    for (auto now = begun; helper_ && !asked_.empty(); now = Clock::now()) {
        const Asked at = asked_.front();
        const auto left = waits_.left(at.about, at.user, now);
        if (left <= Clock::duration::zero() || (now - begun >= step && ending_signal_waits()))
            break;
        poll_helper(std::min<Clock::duration>(left, step));
        waits_.use(at.about, at.user, Clock::now() - now, Clock::now());
        hear();
    }
    return helper_ && asked_.empty();
}

bool Answerer::wait_until(Clock::time_point deadline)
{
    hear();
    for (auto now = Clock::now(); helper_ && !asked_.empty() && now < deadline; now = Clock::now()) {
        poll_helper(std::min<Clock::duration>(deadline - now, step));
        hear();
    }
    return asked_.empty();
}

void Answerer::poll_helper(Clock::duration longest)
{
    pollfd answer{helper_->connection().descriptor(), POLLIN, 0};
    poll(&answer, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(longest).count()));
}

void Answerer::hear()
{
    while (helper_ && !asked_.empty()) {
        auto message = helper_->connection().receive(0ms);
        if (!message) {
            const auto now = Clock::now();
            silent_ += std::min<Clock::duration>(now - std::exchange(looked_at_, now), max_tick_gap);
            if (helper_->connection().closed())
                lose(asked_.front().about, died);
            else if (silent_ > hang_timeout)
                lose(asked_.front().about, hangs);
            return;
        }
        const Asked asked = asked_.front();
        asked_.pop_front();
        charge(asked, std::exchange(silent_, {}));
        looked_at_ = Clock::now();
        if (!work_.take(std::move(*message)))
            lose(asked.about, astray);
    }
}

bool Answerer::has_share(const Asked& asked) const
{
    const auto now = Clock::now();
    return of_owner_.empty() || (of_process_.used(asked.about, now) < process_allowance &&
                                 of_owner_.used(asked.user, now) < owner_allowance);
}

// took: between polls that found no answer, so time in which this process was busy elsewhere does not count.
void Answerer::charge(const Asked& asked, Clock::duration took)
{
    constexpr auto negligible = 5ms;
    if (asked.about == 0 || took < negligible)
        return;
    const auto now = Clock::now();
    of_process_.use(asked.about, took, now);
    of_owner_.use(asked.user, took, now);
}

void Answerer::lose(pid_t about, std::string_view why)
{
    const std::string at = helper_->at();
    end();
    if (about != 0)
        blame(about, at, why);
    else if (!std::exchange(told_, true))
        warn(fmt::format("{}{}{}; {}", at, at.empty() ? "" : ": ", why, work_.consequence));
}

void Answerer::end()
{
    asked_.clear();
    silent_ = {};
    helper_.reset();
    if (work_.begun_anew)
        work_.begun_anew();
}

void Answerer::blame(pid_t about, std::string_view at, std::string_view why)
{
    const auto owner = owner_of(about);
    if (!owner)
        return; // it ended in the middle
    if (why == died && forgiven_.insert(*owner).second)
        return; // something else may have ended it
    if (!bar(about))
        return;
    warn(fmt::format("{}{}process {}{}: {}; {}", at, at.empty() ? "" : " (", about, at.empty() ? "" : ")", why,
                     work_.consequence));
    if (++strikes_[*owner] == strikes_max)
        warn(fmt::format("files of the user of process {} have stopped {} helpers: {}", about, strikes_max,
                         work_.consequence));
}

} // namespace gpusnoop
