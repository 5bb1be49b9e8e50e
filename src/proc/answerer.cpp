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

constexpr std::chrono::milliseconds patience = 700ms; // with one answer
constexpr std::chrono::milliseconds step = 50ms;      // then whether we are to end is looked at again
constexpr auto process_allowance = 3s;                // that one process may have us wait, at once
constexpr auto owner_allowance = 10s;                 // the same of one user
constexpr auto hanging = 3s;                          // without a word
constexpr auto between = 1500ms; // two looks are a second apart; if more, it is we who were stopped
constexpr auto until_next_begin = 1s;
constexpr size_t asked_max = 256; // without an answer
constexpr unsigned strikes_max = 8;

// Why a helper is replaced.
constexpr std::string_view hangs = "it cannot be read within 3 s";
constexpr std::string_view died = "the helper that read it has died";
constexpr std::string_view astray = "the helper that read it gives no answers any more, but something else";

} // namespace

bool Answerer::barred(pid_t about) const
{
    if (about == 0)
        return false;
    if (!barred_.empty() && barred_.contains({about, start_time_ns(about)}))
        return true;
    if (strikes_.empty())
        return false;
    const auto strikes = strikes_.find(owner_of(about).value_or(0));
    return strikes != strikes_.end() && strikes->second >= strikes_max;
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
    if (asked_.size() >= asked_max || barred(about) || !begin())
        return false;
    if (asked_.empty()) {
        looked_at_ = Clock::now();
        silent_ = {};
    }
    if (!helper_->connection().send(question, file, true)) {
        if (helper_->connection().closed())
            lose(asked_.empty() ? about : asked_.front(), died);
        return false;
    }
    asked_.push_back(about);
    return true;
}

bool Answerer::ask(pid_t about, std::string_view question)
{
    hear();
    const auto begun = Clock::now();
    if (late_ || !post(about, question))
        return false;
    if (!patient_with(about, begun)) {
        late_ = true;
        return false;
    }
    for (auto now = begun; helper_ && !asked_.empty() && now - begun < patience; now = Clock::now()) {
        if (now - begun >= step && ending_signal_waits())
            break;
        pollfd answer{helper_->connection().descriptor(), POLLIN, 0};
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(patience - (now - begun));
        poll(&answer, 1, static_cast<int>(std::min(left, step).count()));
        hear();
    }
    spend(about, Clock::now() - begun, Clock::now());
    late_ = !asked_.empty();
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
        if (!work_.take(std::move(*message)))
            lose(about, astray);
    }
}

bool Answerer::patient_with(pid_t about, Clock::time_point now) const
{
    return about == 0 || of_owner_.empty() ||
           (of_process_.used(about, now) < process_allowance &&
            of_owner_.used(owner_of(about).value_or(0), now) < owner_allowance);
}

void Answerer::spend(pid_t about, Clock::duration took, Clock::time_point now)
{
    constexpr auto nothing = 5ms; // as all questions take
    if (about == 0 || took < nothing)
        return;
    of_process_.use(about, took, now);
    of_owner_.use(owner_of(about).value_or(0), took, now);
}

void Answerer::lose(pid_t about, std::string_view why)
{
    const std::string at = helper_->at();
    asked_.clear();
    late_ = false;
    helper_.reset();
    if (work_.begun_anew)
        work_.begun_anew();
    if (about != 0)
        bar(about, at, why);
    else if (!std::exchange(told_, true))
        warn(fmt::format("{}: {}; {}", at, why, work_.consequence));
}

void Answerer::bar(pid_t about, std::string_view at, std::string_view why)
{
    const std::pair process(about, start_time_ns(about));
    const auto owner = owner_of(about);
    if (!owner)
        return; // it ended in the middle
    if (why == died && forgiven_.insert(process).second)
        return; // something else may have ended it
    if (!barred_.insert(process).second)
        return;
    warn(fmt::format("{}{}process {}{}: {}; {}", at, at.empty() ? "" : " (", about, at.empty() ? "" : ")", why,
                     work_.consequence));
    if (++strikes_[*owner] == strikes_max)
        warn(fmt::format("files of the user of process {} have stopped {} helpers: {}", about, strikes_max,
                         work_.consequence));
}

} // namespace gpusnoop
