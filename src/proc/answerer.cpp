// SPDX-License-Identifier: Apache-2.0
#include "proc/answerer.hpp"

#include "proc/process.hpp"
#include "util/ending_signals.hpp"
#include "util/error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <poll.h>
#include <utility>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds step = 50ms; // then whether we are to end is looked at again
constexpr auto process_allowance = 3s;           // that one process may have us wait, at once
constexpr auto owner_allowance = 10s;            // the same of one user
constexpr auto hanging = 3s;                     // without a word
constexpr auto between = 1500ms;                 // two looks are a second apart; if more, it is we who were stopped
constexpr auto until_next_begin = 1s;
constexpr size_t posted_max = 64;    // without an answer: who asks has to wait for them, too
constexpr auto barred_for_sure = 1s; // then whether the process is still the same is looked at again
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
    next_begin_ = now + until_next_begin;
    helper_.emplace(work_.serve);
    if (helper_->pid() <= 0)
        helper_.reset();
    return helper_.has_value();
}

bool Answerer::post(pid_t about, std::string_view question, int file)
{
    return asked_.size() < posted_max && send(about, question, file);
}

bool Answerer::send(pid_t about, std::string_view question, int file)
{
    if (!allowed(about))
        return false;
    // One that has died while it had nothing to do is nobody's fault.
    for (int tries = 0; tries < 2 && begin(); tries++) {
        if (helper_->connection().send(question, file, true)) {
            if (asked_.empty())
                looked_at_ = Clock::now();
            asked_.push_back(about);
            return true;
        }
        if (!helper_->connection().closed())
            return false;
        if (!asked_.empty()) {
            lose(asked_.front(), died);
            return false;
        }
        end();
    }
    return false;
}

bool Answerer::ask(pid_t about, std::string_view question)
{
    hear();
    return !late_ && send(about, question, -1) && wait();
}

bool Answerer::wait()
{
    hear();
    if (late_)
        return false;
    const auto begun = Clock::now();
    waited_since_ = begun;
    for (auto now = begun; helper_ && !asked_.empty() && now - begun < patience; now = Clock::now()) {
        if (now - begun >= step && ending_signal_waits())
            break;
        pollfd answer{helper_->connection().descriptor(), POLLIN, 0};
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(patience - (now - begun));
        poll(&answer, 1, static_cast<int>(std::min(left, step).count()));
        hear();
    }
    late_ = !asked_.empty();
    if (late_)
        spend(asked_.front());
    waited_since_.reset();
    return helper_ && !late_;
}

void Answerer::hear()
{
    while (helper_ && !asked_.empty()) {
        auto message = helper_->connection().receive(0ms);
        if (!message) {
            const auto now = Clock::now();
            silent_ += std::min<Clock::duration>(now - std::exchange(looked_at_, now), between);
            if (helper_->connection().closed())
                lose(asked_.front(), died);
            else if (silent_ > hanging)
                lose(asked_.front(), hangs);
            return;
        }
        silent_ = {};
        looked_at_ = Clock::now();
        const pid_t about = asked_.front();
        asked_.pop_front();
        late_ &= !asked_.empty();
        spend(about);
        if (!work_.take(std::move(*message)))
            lose(about, astray);
    }
}

// Neither barred, nor has it had us wait for too long.
bool Answerer::allowed(pid_t about)
{
    if (barred(about))
        return false;
    const auto now = Clock::now();
    return about == 0 || of_owner_.empty() ||
           (of_process_.used(about, now) < process_allowance &&
            of_owner_.used(owner_of(about).value_or(0), now) < owner_allowance);
}

// Somebody has waited for the answer to a question about it.
void Answerer::spend(pid_t about)
{
    constexpr auto nothing = 5ms; // as all questions take
    if (!waited_since_)
        return;
    const auto now = Clock::now();
    const auto took = now - std::exchange(*waited_since_, now);
    if (about == 0 || took < nothing)
        return;
    of_process_.use(about, took, now);
    of_owner_.use(owner_of(about).value_or(0), took, now);
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
    late_ = false;
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
