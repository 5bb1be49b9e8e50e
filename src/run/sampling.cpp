// SPDX-License-Identifier: Apache-2.0
#include "run/sampling.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/loop.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <set>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

namespace {

constexpr double margin = 0.9;      // fraction of --max-overhead to aim for: windows may have more calls than expected
constexpr double min_share = 0.001; // minimum fraction of time with probes attached; large enough for windows to
                                    // contain some calls
constexpr double max_step = 4;      // largest factor by which the share changes at once

} // namespace

void DutyCycle::add(double sampled, double others, double share_of_time)
{
    const double rest = std::max(1 - sampled - others, 0.01);
    const double cost = sampled / rest, fixed = others / rest;
    if (is_whole() && cost + fixed <= ceiling_)
        return;
    const double allowed = std::max(ceiling_ * margin - fixed, 0.0);
    // cost of the sampled probes if they were always attached
    const double always = cost / std::max(share_of_time, min_share);
    // probes of an idle process cost nothing; a share above 1 / margin means that they may stay attached all the time
    const double wanted = always > 0 ? allowed / always : 2 / margin;
    if (is_whole())
        share_ = wanted;
    else
        share_ = std::clamp(wanted, share_ / max_step, share_ * max_step);
    share_ = share_ >= 1 && wanted > 1 / margin ? 1 : std::clamp(share_, min_share, margin);
}

namespace {

constexpr uint64_t ms = 1'000'000;
constexpr uint64_t default_period_ns = 250 * ms;
constexpr uint64_t max_period_ns = 500 * ms; // short enough for every report of 1 s to contain a window
constexpr uint64_t min_window_ns = 3 * ms;   // attaching and detaching take a millisecond each
constexpr uint64_t timer_ns = 1 * ms;        // steps that are due within this time are done together

// CPU time of all threads of a process in ns; 0 if it has exited.
uint64_t cpu_time_of(uint32_t pid)
{
    clockid_t clock{};
    return clock_getcpuclockid(static_cast<pid_t>(pid), &clock) == 0 ? clock_ns(clock) : 0;
}

void append(std::vector<CallDelta>& to, std::vector<CallDelta> what)
{
    to.insert(to.end(), what.begin(), what.end());
}

uint64_t now()
{
    return clock_ns(CLOCK_MONOTONIC);
}

bool is_sampled(CallPart part)
{
    return part == CallPart::launch || part == CallPart::graph || part == CallPart::copy;
}

} // namespace

Sampling::Sampling(const Running& running, const bpf_object* object, Settings settings)
    : running_(running), probes_(*running_.probes), settings_(std::move(settings)), probe_(probes_.tier),
      programs_(object, settings_.hooks), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))
{
    if (!timer_)
        throw Error("cannot create a timer: " + errno_text(errno));
    running_.loop.watch(timer_.get(), [this] {
        uint64_t expirations = 0;
        if (read(timer_.get(), &expirations, sizeof(expirations)) == sizeof(expirations))
            on_timer();
    });
    set_timer();
}

bool Sampling::absorb(const CallDelta& delta)
{
    const auto found = processes_.find(probes_.group_of(static_cast<pid_t>(delta.key.image.pid)));
    if (found == processes_.end())
        return false;
    Process& process = found->second;
    if (!is_sampled(part_of(delta.key))) {
        process.other_hits += delta[CALL_COUNT];
        return false;
    }
    process.hits += delta[CALL_COUNT];
    if (!process.sample)
        return false;
    if (process.sample->is_open())
        process.sample->add(delta);
    return true;
}

std::vector<CallDelta> Sampling::drain()
{
    std::vector<CallDelta> all = std::exchange(ended_rows_, {});
    sampled_ = std::exchange(ended_sampled_, {});
    for (auto& [group, process] : processes_) {
        if (!process.sample)
            continue;
        const bool is_open = process.sample->is_open();
        if (is_open)
            end_window(process);
        append(all, process.sample->drain(work_ns(moment_of(process))));
        mark(process, sampled_);
        if (is_open)
            begin_window(process);
    }
    return all;
}

void Sampling::mark(const Process& process, std::map<uint32_t, Sampled>& in)
{
    for (const auto& [pid, cpu_ns] : process.pids)
        in[pid] = process.sample->accuracy();
}

// Ends the sampling of a process. Before this call, the process's last calls must have been read (read_rows()).
void Sampling::end(Process& process)
{
    if (process.sample->is_open())
        end_window(process);
    append(ended_rows_, process.sample->drain_last(work_ns(moment_of(process))));
    mark(process, ended_sampled_);
    process.sample.reset();
}

std::optional<double> Sampling::hit_ns()
{
    const std::optional<ProbeCost>& probe = probe_.cost();
    const std::optional<double>& program = programs_.mean_ns();
    if (!probe || !program)
        return std::nullopt;
    return probe->entry_ns + *program;
}

void Sampling::on_timer()
{
    track_users();
    for (auto& [group, process] : processes_)
        if (process.has_ended || process.due_ns <= now() + timer_ns)
            step(group, process);
    std::erase_if(processes_, [](const auto& item) { return item.second.has_ended; });
    set_timer();
}

// Updates the list of processes. A new process starts with its sampled probes attached.
void Sampling::track_users()
{
    std::map<pid_t, std::set<uint32_t>> users;
    for (const pid_t pid : running_.users())
        users[probes_.group_of(pid)].insert(static_cast<uint32_t>(pid));
    for (auto& [group, process] : processes_)
        process.has_ended = !users.contains(group);
    for (const auto& [group, pids] : users) {
        const auto [place, is_new] = processes_.try_emplace(group, settings_.percent / 100);
        Process& process = place->second;
        std::erase_if(process.pids, [&](const auto& item) { return !pids.contains(item.first); });
        for (const uint32_t pid : pids)
            process.pids.try_emplace(pid, cpu_time_of(pid));
        if (is_new) {
            process.window = process.period = moment_of(process);
            process.due_ns = now() + default_period_ns;
        }
    }
}

// Opens or closes a window. To open, attaches the probes and then reads the counts. To close, reads the counts before
// the probes are detached. Also reads the counts when the process has exited.
void Sampling::step(pid_t group, Process& process)
{
    const bool opens = !process.has_ended && process.sample && !process.sample->is_open();
    if (process.has_ended && !process.sample)
        return;
    if (opens)
        probes_.resume(group);
    // when a window opens, this discards calls that were counted while probes were being attached
    settings_.read_rows();
    if (process.has_ended)
        end(process);
    else if (opens)
        open(process);
    else
        close(group, process);
}

Sampling::Process::Moment Sampling::moment_of(Process& process)
{
    for (auto& [pid, seen_ns] : process.pids)
        if (const uint64_t cpu_ns = cpu_time_of(pid); cpu_ns > seen_ns) {
            process.cpu_ns += cpu_ns - seen_ns;
            seen_ns = cpu_ns;
        }
    return {now(), process.cpu_ns, process.hits, process.other_hits};
}

uint64_t Sampling::work_ns(const Process::Moment& at)
{
    const auto probes_ns = static_cast<uint64_t>(static_cast<double>(at.hits) * hit_ns().value_or(0));
    return at.cpu_ns - std::min(probes_ns, at.cpu_ns);
}

void Sampling::begin_window(Process& process)
{
    process.window = moment_of(process);
    process.sample->open(work_ns(process.window));
}

void Sampling::end_window(Process& process)
{
    const Process::Moment end = moment_of(process);
    const uint64_t hits = end.hits - process.window.hits;
    process.sample->close(work_ns(end), static_cast<uint64_t>(static_cast<double>(hits) * hit_ns().value_or(0)));
    process.traced_ns += end.wall_ns - process.window.wall_ns;
}

void Sampling::open(Process& process)
{
    begin_window(process);
    const auto window_ns = static_cast<uint64_t>(process.cycle.share() * static_cast<double>(default_period_ns));
    process.due_ns = now() + std::max(window_ns, min_window_ns);
}

// Ends a window, or a period in which all probes were attached. Decides from the measured cost whether to detach the
// sampled probes, and for how long.
void Sampling::close(pid_t group, Process& process)
{
    const bool whole = !process.sample;
    if (whole)
        process.traced_ns = now() - process.period.wall_ns;
    else
        end_window(process);
    const uint64_t window_ns = whole ? 0 : now() - process.window.wall_ns;
    measure(group, process);
    if (process.cycle.is_whole()) {
        if (process.sample)
            end(process);
        process.due_ns = now() + default_period_ns;
        return;
    }
    if (whole)
        process.sample.emplace(work_ns(moment_of(process)));
    const uint64_t ended_ns = now();
    probes_.pause(group);
    const auto period_ns = static_cast<uint64_t>(static_cast<double>(window_ns) / process.cycle.share());
    process.due_ns = ended_ns + std::clamp(period_ns, default_period_ns / 2, max_period_ns) -
                     std::min(window_ns, default_period_ns / 2);
}

void Sampling::measure(pid_t group, Process& process)
{
    const Process::Moment end = moment_of(process);
    const Process::Moment begin = std::exchange(process.period, end);
    const uint64_t traced_ns = std::exchange(process.traced_ns, 0);
    const std::optional<double> one_ns = hit_ns();
    if (!one_ns || end.cpu_ns == begin.cpu_ns || end.wall_ns == begin.wall_ns)
        return;
    const auto used = static_cast<double>(end.cpu_ns - begin.cpu_ns);
    const double cost = static_cast<double>(end.hits - begin.hits) * *one_ns / used;
    const double others =
        static_cast<double>(end.other_hits - begin.other_hits) * (*one_ns + probe_.cost()->return_ns) / used;
    process.cycle.add(cost, others, static_cast<double>(traced_ns) / static_cast<double>(end.wall_ns - begin.wall_ns));
    if (!process.cycle.is_whole() && !process.sample)
        report_sampled(group, process, 100 * (cost + others));
}

void Sampling::report_sampled(pid_t group, Process& process, double percent)
{
    if (std::exchange(process.reported, true))
        return;
    const std::string whose = group == 0
                                  ? fmt::format("{} processes", process.pids.size())
                                  : fmt::format("process {} ({})", group, printable(process_name(group).value_or("?")));
    warn(fmt::format(
        "the probes take {:.0f}% of the CPU time of {}, more than the {:g}% of --max-overhead: launches and copies "
        "are sampled from now on, and their figures are estimates (~)",
        percent, whose, settings_.percent));
}

void Sampling::set_timer()
{
    uint64_t next_ns = now() + default_period_ns;
    for (const auto& [group, process] : processes_)
        next_ns = std::min(next_ns, process.due_ns);
    next_ns = std::max<uint64_t>(next_ns, 1);
    itimerspec at{};
    at.it_value.tv_sec = static_cast<time_t>(next_ns / 1'000'000'000);
    at.it_value.tv_nsec = static_cast<long>(next_ns % 1'000'000'000);
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

} // namespace gpusnoop
