// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/diagnosis.hpp"

#include "base/clock.hpp"
#include "bpf/shared/holding.h"
#include "proc/process.hpp"
#include "rows/launch_groups.hpp"
#include "tools/cudatop/call_results.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace gpusnoop {

namespace {

constexpr int out_of_memory = 2; // CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation
constexpr int deinitialized = 4; // CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading, hipErrorDeinitialized

std::optional<Calls> kind_of(CallPart part)
{
    switch (part) {
    case CallPart::launch:
    case CallPart::graph:
        return Calls::launches;
    case CallPart::graph_life:
        return Calls::graphs;
    case CallPart::copy:
        return Calls::copies;
    case CallPart::wait:
    case CallPart::poll:
        return Calls::waits;
    case CallPart::memory:
        return Calls::memory;
    case CallPart::driver:
        return Calls::driver;
    }
    return {};
}

// Returns the command to type next. A pid of 0 means that the process has exited, so the command is for all processes.
std::string next_command(const Rule& rule, uint32_t pid)
{
    std::string next(rule.next);
    constexpr std::string_view of_process = " -p PID";
    if (const size_t at = next.find(of_process); at != std::string::npos && !pid)
        next.erase(at, of_process.size());
    else if (const size_t place = next.find("PID"); place != std::string::npos && pid)
        next.replace(place, 3, std::to_string(pid));
    return next;
}

bool is_refused(const call_key& key)
{
    return key.kind == KIND_ALLOC && key.result == out_of_memory;
}

// True if the call failed because the driver had shut down (CUDA_ERROR_DEINITIALIZED). When a process exits, static
// destructors normally make such calls, so they do not count as failures.
bool is_after_shutdown(const call_key& key, CallPart part)
{
    return part != CallPart::driver && key.result == deinitialized;
}

} // namespace

void Diagnosis::count(Counts& counts, const CallDelta& delta) const
{
    const call_key& key = delta.key;
    const CallPart part = part_of(key);
    const auto kind = static_cast<size_t>(*kind_of(part));
    if (is_after_shutdown(key, part))
        return;
    // A synchronous copy or free is reported as a wait, too. Its calls and errors must be counted only once.
    const bool twice = part == CallPart::wait && (key.wait.wait == WAIT_COPY || key.wait.wait == WAIT_FREE);
    const uint64_t calls = part == CallPart::copy ? delta[CALL_COUNT] - delta[COPY_CONTINUED] : delta[CALL_COUNT];
    if (!twice && part != CallPart::poll)
        counts.calls.at(kind) += calls;
    if (key.kind == KIND_ALLOC && part == CallPart::memory)
        counts.allocations += delta[CALL_COUNT];
    if (is_refused(key) && part == CallPart::memory) {
        counts.refused += delta[CALL_COUNT];
        counts.refused_bytes = delta[MEMORY_LAST_BYTES];
        counts.calls.at(kind) -= calls; // another rule reports out-of-memory allocations
        return;
    }
    if (has_failed(key)) {
        if (!twice || (key.wait.wait == WAIT_COPY && !results_of_copies_))
            counts.errors[{twice ? Calls::copies : *kind_of(part), error_name(key)}] += calls;
        return;
    }
    const bool captured = key.flags & CALL_RECORDED;
    switch (part) {
    case CallPart::launch:
    case CallPart::graph:
        if (key.kind == KIND_LAUNCH || key.kind == KIND_GRAPH_LAUNCH)
            (captured ? counts.captured : counts.launches) += delta[CALL_COUNT];
        if (const auto few = has_few_blocks(key); few && !captured) {
            counts.grids += delta[CALL_COUNT];
            counts.small_grids += *few ? delta[CALL_COUNT] : 0;
        }
        counts.launching[key.tid] += delta[CALL_TOTAL_NS];
        counts.launched[key.tid] += captured ? 0 : delta[CALL_COUNT];
        break;
    case CallPart::graph_life:
        (key.kind == KIND_CAPTURE_END ? counts.captures : counts.instantiations) += delta[CALL_COUNT];
        break;
    case CallPart::copy:
        if (captured)
            break;
        counts.copies += delta[CALL_COUNT];
        counts.small_copies += delta[COPY_SMALL];
        if (!(key.flags & CALL_ASYNCHRONOUS) && key.copy.direction != DIRECTION_SET) {
            counts.synchronous += delta[CALL_COUNT];
            if (key.stack >= 0) // the stack was sampled
                counts.copied_from[{key.stack, key.caller}] += delta[CALL_COUNT];
        }
        break;
    case CallPart::wait:
        if (key.wait.wait == WAIT_COPY && key.stack >= 0)
            counts.copied_from[{key.stack, key.caller}] += delta[CALL_COUNT];
        if (!(key.flags & CALL_IN_PARTS))
            counts.waiting[key.tid] += delta[CALL_TOTAL_NS];
        break;
    case CallPart::poll:
        counts.polls += delta[CALL_COUNT];
        break;
    case CallPart::memory:
        if (key.kind == KIND_FREE && is_device_memory(key.memory.holding))
            counts.frees += delta[CALL_COUNT];
        break;
    case CallPart::driver:
        break;
    }
}

void Diagnosis::add(const Interval& interval)
{
    now_ns_ = interval.now_ns;
    const uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME);
    const std::vector<ImageId> all = processes_.images();
    const std::set<ImageId> running(all.begin(), all.end());
    std::erase_if(known_, [&](const auto& item) { return !running.contains(item.first); });
    for (const ImageId& image : running)
        if (const auto [item, is_new] = known_.try_emplace(image); is_new) {
            item->second.called_ns = now_ns_;
            track_start(image);
        }
    for (const auto& [pid, exit_ns] : std::exchange(exits_, {}))
        restarts_.ended(pid, exit_ns);
    for (auto& [image, history] : known_) {
        history.counts.emplace_back().seconds = interval.seconds;
        history.wait.reset();
        history.pending.reset();
        history.stuck.reset();
        const uint64_t cpu_ns = cpu_time_ns(static_cast<pid_t>(image.pid));
        if (history.cpu_ns)
            history.counts.back().cpu_ns = cpu_ns - std::min(cpu_ns, *history.cpu_ns);
        history.cpu_ns = cpu_ns;
    }
    auto of = [this](const ImageId& image) {
        const auto found = known_.find(image);
        return found == known_.end() ? nullptr : &found->second;
    };
    for (const CallDelta& delta : interval.calls)
        if (History* history = of(delta.key.image)) {
            count(history->counts.back(), delta);
            history->counts.back().callers.insert(delta.key.tid);
            history->called_ns = now_ns_;
        }
    for (const Waiting::Part& part : interval.waits) {
        History* history = of(part.key.image);
        if (!history)
            continue;
        history->called_ns = now_ns_;
        if (part_of(part.key) != CallPart::poll)
            history->counts.back().waiting[part.key.tid] += part.new_ns;
        if (part.waiting && (!history->wait || history->wait->elapsed_ns < part.elapsed_ns))
            history->wait = part;
    }
    for (const driver_call& call : interval.driver_calls)
        if (History* history = of(call.key.image);
            history && (!history->pending || call.since_ns < history->pending->since_ns))
            history->pending = call;
    for (const StuckCall& call : interval.stuck_calls)
        if (History* history = of(call.image); history && (!history->stuck || call.seconds > history->stuck->seconds))
            if (!interval.suspension_of || interval.suspension_of(call.image.pid, call.tid).empty())
                history->stuck = call;
    count_held(interval.holdings);
    launches_.clear();
    for (auto& [image, history] : known_) {
        if (history.counts.back().launches)
            history.launched_ns = interval.now_ns - static_cast<uint64_t>(interval.seconds * 1e9);
        end_interval(image, history, interval.seconds);
    }
    add_load();
    verdicts_.clear();
    for (auto& [image, history] : known_)
        judge(image, history, interval);
    judge_restarts(boot_ns);
    std::ranges::sort(verdicts_, comes_before);
}

bool comes_before(const Verdict& a, const Verdict& b)
{
    const auto order = [](const Verdict& v) {
        return std::tuple(-static_cast<int>(v.severity), v.rule, std::string_view(v.name), v.process.pid);
    };
    return order(a) < order(b);
}

void Diagnosis::track_start(const ImageId& image)
{
    const Owner& owner = processes_.owner(image, {});
    restarts_.started({.identity = new_verdict(image),
                       .start_ns = processes_.info(image).start_ns,
                       .place = owner.text(),
                       .is_contained = owner.container() || !owner.pod_uid().empty(),
                       .parent = static_cast<uint32_t>(parent_of(static_cast<pid_t>(image.pid)).value_or(0))});
}

// A restart loop is reported even while none of its processes is running.
void Diagnosis::judge_restarts(uint64_t boot_ns)
{
    for (Restarts::Loop& loop : restarts_.loops(boot_ns)) {
        Signs signs;
        signs.restarts = {loop.starts, loop.seconds, std::move(loop.last_error)};
        for (const Rule& rule : rules())
            if (auto found = rule.check(signs)) {
                Verdict verdict = std::move(loop.newest);
                verdict.rule = &rule;
                verdict.severity = found->severity;
                verdict.words = std::move(found->words);
                verdict.next = loop.next.empty() ? std::string(rule.next) : std::move(loop.next);
                verdicts_.push_back(std::move(verdict));
                break;
            }
    }
}

void Diagnosis::count_held(const Holdings& holdings)
{
    std::map<ImageId, int64_t> held;
    for (const auto& [row, amount] : holdings.now())
        if (is_device_memory(row.memory.holding))
            held[row.image] += amount.bytes;
    for (auto& [image, history] : known_) {
        const auto found = held.find(image);
        const int64_t now = found == held.end() ? 0 : found->second;
        history.counts.back().grown_bytes = now - history.held_bytes;
        history.held_bytes = now;
    }
}

void Diagnosis::Streak::add(bool holds, bool is_over, double interval_seconds)
{
    constexpr double max_pause_seconds = 2;
    pause = holds ? 0 : pause + interval_seconds;
    if (is_over || pause >= max_pause_seconds)
        *this = {};
    else if (holds)
        seconds += interval_seconds, ++intervals;
}

void Diagnosis::end_interval(const ImageId& image, History& history, double seconds)
{
    const Counts& last = history.counts.back();
    history.growing.add(last.grown_bytes > 0, last.frees || last.grown_bytes < 0, seconds);
    history.capturing.add(last.captures || last.instantiations, false, seconds);
    const bool small = are_small(last.small_grids, last.grids, seconds);
    history.small.add(small, last.grids && !small, seconds);
    double kept = 0;
    for (const Counts& counts : history.counts)
        kept += counts.seconds;
    while (history.counts.size() > 1 && kept - history.counts.front().seconds >= window_seconds) {
        kept -= history.counts.front().seconds;
        history.counts.pop_front();
    }
    measure_threads(image, history);
    std::array<bool, static_cast<size_t>(Calls::count)> fails{};
    for (const Counts& counts : history.counts) {
        for (const auto& [error, n] : counts.errors)
            fails.at(static_cast<size_t>(error.first)) = true;
        launches_[image] += counts.launches;
    }
    for (size_t i = 0; i < fails.size(); i++)
        history.failing_seconds.at(i) = fails.at(i) ? history.failing_seconds.at(i) + seconds : 0;
}

// Measures how threads were scheduled in the last interval: spinning, starving, off CPU. Also reads the CPU time of
// threads that made calls in earlier intervals of the window, but not in the last one. If they make calls in the next
// interval, their CPU time in that interval is the difference from this reading.
void Diagnosis::measure_threads(const ImageId& image, History& history)
{
    constexpr size_t threads_max = 64;
    Counts& last = history.counts.back();
    const auto interval_ns = static_cast<uint64_t>(last.seconds * 1e9);
    std::set<uint32_t> threads;
    for (const Counts& counts : history.counts) {
        for (const auto& [tid, ns] : counts.waiting)
            threads.insert(tid);
        threads.insert(counts.callers.begin(), counts.callers.end());
    }
    std::map<uint32_t, ThreadCpuTime> now;
    size_t measured = 0;
    for (const uint32_t tid : threads) {
        if (++measured > threads_max)
            break;
        const auto share = thread_cpu_time(static_cast<pid_t>(image.pid), static_cast<pid_t>(tid));
        if (!share)
            continue;
        now[tid] = *share;
        const auto before = history.threads.find(tid);
        if (before == history.threads.end() || before->second.turns > share->turns) // new thread, or id reused
            continue;
        const uint64_t ready_ns =
            std::min(share->waited_ns - std::min(share->waited_ns, before->second.waited_ns), interval_ns);
        const uint64_t used_ns = share->used_ns - std::min(share->used_ns, before->second.used_ns);
        const uint64_t waiting_ns = last.waiting.contains(tid) ? last.waiting.at(tid) : 0;
        const uint64_t spinning_ns = spun_ns(waiting_ns, used_ns, interval_ns);
        last.starving[tid] = ready_ns;
        last.turns += share->turns - before->second.turns;
        last.spinning[tid] = spinning_ns;
        last.off_cpu[tid] = interval_ns - std::min(interval_ns, used_ns + ready_ns + waiting_ns - spinning_ns);
    }
    history.threads = std::move(now);
}

// Reads the machine's load at most once, and only if a thread starved for more than a tenth of the interval.
void Diagnosis::add_load()
{
    constexpr uint64_t min_part = 10;
    std::optional<MachineLoad> now;
    for (auto& [image, history] : known_) {
        Counts& last = history.counts.back();
        const auto min_ns = static_cast<uint64_t>(last.seconds * 1e9) / min_part;
        if (std::ranges::none_of(last.starving, [&](const auto& thread) { return thread.second > min_ns; }))
            continue;
        if (!now)
            now = machine_load();
        last.load = now;
    }
}

uint64_t spun_ns(uint64_t waiting_ns, uint64_t cpu_ns, uint64_t interval_ns)
{
    const uint64_t elsewhere_ns = interval_ns - std::min(interval_ns, waiting_ns);
    return std::min(waiting_ns, cpu_ns - std::min(cpu_ns, elsewhere_ns));
}

// Detects NCCL by the names of the threads that its communicators create, such as "NCCL Service 0" (NCCL 2.12 and
// newer). A mapped NCCL library would prove nothing, because PyTorch maps it in every process.
void Diagnosis::detect_nccl(const ImageId& image, History& history)
{
    constexpr uint64_t long_ns = 2'000'000'000;
    if (!history.wait)
        history.has_nccl.reset();
    else if (!history.has_nccl && history.wait->elapsed_ns >= long_ns)
        history.has_nccl = std::ranges::any_of(thread_names(static_cast<pid_t>(image.pid)),
                                               [](const std::string& name) { return name.starts_with("NCCL"); });
}

// Sums how long the thread of the longest wait was suspended during that wait. The rule on hangs subtracts this time.
// An interval counts in full if the thread is suspended at its end, and otherwise not at all.
void Diagnosis::check_suspension(const ImageId& image, History& history, const Interval& interval)
{
    constexpr uint64_t long_ns = 500'000'000;
    const uint64_t since_ns = history.wait ? history.wait->since_ns : 0;
    if (std::exchange(history.suspended_since_ns, since_ns) != since_ns)
        history.suspended_ns = 0;
    history.suspension.clear();
    if (!history.wait || history.wait->elapsed_ns < long_ns || !interval.suspension_of)
        return;
    history.suspension = interval.suspension_of(image.pid, history.wait->key.tid);
    if (!history.suspension.empty())
        history.suspended_ns += static_cast<uint64_t>(interval.seconds * 1e9);
}

void Diagnosis::record_gpu_busy(const ImageId& image, History& history, const Interval& interval)
{
    std::optional<unsigned>& most = history.counts.back().gpu_percent;
    for (const Gpu& gpu : interval.gpus.of(image).gpus)
        for (const NvmlDeviceState& state : interval.nvml.states())
            if (state.utilization && gpu.by == Gpu::By::index && gpu.number == state.index)
                most = std::max(most.value_or(0), *state.utilization);
}

Verdict Diagnosis::new_verdict(const ImageId& image)
{
    const Owner& owner = processes_.owner(image, {});
    return {.process = image,
            .name = processes_.info(image).comm,
            .owner = owner.text(),
            .pod_namespace = owner.names.pod_namespace,
            .pod = owner.names.pod,
            .container = owner.names.container,
            .words = {},
            .next = {}};
}

void Diagnosis::judge(const ImageId& image, History& history, const Interval& interval)
{
    check_suspension(image, history, interval);
    detect_nccl(image, history);
    record_gpu_busy(image, history, interval);
    const Signs now = signs(image, history, interval);
    history.free_bytes = now.free_bytes;
    const bool exited = interval.exited.contains(image);
    bool had_error = false;
    for (const Rule& rule : rules()) {
        std::optional<Finding> found = rule.check(now);
        if (!found)
            continue;
        Verdict verdict = new_verdict(image);
        verdict.exited = exited;
        verdict.group = restarts_.group_of(image);
        verdict.rule = &rule;
        verdict.severity = found->severity;
        verdict.words = std::move(found->words);
        verdict.next = next_command(rule, exited ? 0 : image.pid);
        if (rule.error && !had_error) {
            had_error = true;
            restarts_.failed(image, verdict.words, next_command(rule, 0));
        }
        if (rule.name == "hangs" || rule.name == "stopped") {
            verdict.tid = history.wait->key.tid;
            verdict.stack = history.wait->key.stack;
            verdict.caller = history.wait->key.caller;
        } else if (rule.name == "stuck") {
            verdict.tid = history.stuck->tid;
            verdict.stack = history.stuck->stack;
            verdict.caller = history.stuck->caller;
        } else if (!now.copied_from.empty() && rule.name == "copies") {
            std::tie(verdict.stack, verdict.caller) = most_copied_from(history).value_or(Place{-1, 0});
        }
        verdicts_.push_back(std::move(verdict));
    }
}

void Diagnosis::forget(const std::set<ImageId>& images)
{
    for (const ImageId& image : images) {
        known_.erase(image);
        std::erase_if(verdicts_,
                      [&](const Verdict& verdict) { return verdict.process == image && !verdict.rule->of_group; });
    }
}

} // namespace gpusnoop
