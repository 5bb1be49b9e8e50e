// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/diagnosis.hpp"

#include "bpf/shared/holding.h"
#include "calls/call_results.hpp"
#include "calls/launch_groups.hpp"
#include "driver/driver_text.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <ranges>
#include <tuple>

namespace gpusnoop {
namespace {

constexpr int out_of_memory = 2; // CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation

std::string_view wait_text(uint8_t wait)
{
    constexpr std::array<std::string_view, WAITS> texts = {"the device",
                                                           "a stream",
                                                           "the device",
                                                           "an event",
                                                           "a value",
                                                           "a synchronous copy",
                                                           "the device to free memory",
                                                           "work"};
    return wait < texts.size() ? texts[wait] : texts[WAIT_NONE];
}

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

bool is_refused(const call_key& key)
{
    return key.kind == KIND_ALLOC && key.result == out_of_memory;
}

uint64_t most_of(const std::map<uint32_t, uint64_t>& by_thread)
{
    return by_thread.empty() ? 0 : std::ranges::max(by_thread | std::views::values);
}

double percent(uint64_t ns, double seconds)
{
    return seconds > 0 ? static_cast<double>(ns) / seconds / 1e7 : 0;
}

void add_to(std::map<uint32_t, uint64_t>& sums, const std::map<uint32_t, uint64_t>& more)
{
    for (const auto& [thread, ns] : more)
        sums[thread] += ns;
}

} // namespace

void Diagnosis::count(Counts& counts, const CallDelta& delta) const
{
    const call_key& key = delta.key;
    const CallPart part = part_of(key);
    const auto kind = static_cast<size_t>(*kind_of(part));
    // A synchronous copy counts as a wait, too, whose errors are those of the copy.
    const bool twice = part == CallPart::wait && (key.wait.wait == WAIT_COPY || key.wait.wait == WAIT_FREE);
    const uint64_t calls = part == CallPart::copy ? delta.count - delta.copy.continued : delta.count;
    if (!twice && part != CallPart::poll)
        counts.calls.at(kind) += calls;
    if (key.kind == KIND_ALLOC && part == CallPart::memory)
        counts.allocations += delta.count;
    if (is_refused(key) && part == CallPart::memory) {
        counts.refused += delta.count;
        counts.refused_bytes = delta.memory.last_bytes;
        counts.calls.at(kind) -= calls; // told by a rule of its own
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
            (captured ? counts.captured : counts.launches) += delta.count;
        if (const auto few = has_few_blocks(key); few && !captured) {
            counts.grids += delta.count;
            counts.small_grids += *few ? delta.count : 0;
        }
        counts.launching[key.tid] += delta.total_ns;
        break;
    case CallPart::graph_life:
        (key.kind == KIND_CAPTURE_END ? counts.captures : counts.instantiations) += delta.count;
        break;
    case CallPart::copy:
        if (captured)
            break;
        counts.copies += delta.count;
        counts.small_copies += delta.copy.small;
        if (!(key.flags & CALL_ASYNCHRONOUS) && key.copy.direction != DIRECTION_SET)
            counts.synchronous += delta.count;
        break;
    case CallPart::wait:
        if (key.wait.wait == WAIT_COPY && key.stack >= 0)
            counts.copied_from[{key.stack, key.caller}] += delta.count;
        if (!(key.flags & CALL_IN_PARTS))
            counts.waiting[key.tid] += delta.total_ns;
        break;
    case CallPart::poll:
        counts.polls += delta.count;
        counts.polling[key.tid] += delta.total_ns;
        break;
    case CallPart::memory:
        if (key.kind == KIND_FREE && is_device_memory(key.memory.holding))
            counts.frees += delta.count;
        break;
    case CallPart::driver:
        break;
    }
}

void Diagnosis::add(const Interval& interval)
{
    now_ns_ = interval.now_ns;
    const std::vector<ImageId> all = processes_.images();
    const std::set<ImageId> running(all.begin(), all.end());
    std::erase_if(known_, [&](const auto& item) { return !running.contains(item.first); });
    for (const ImageId& image : running)
        if (const auto [item, is_new] = known_.try_emplace(image); is_new)
            item->second.called_ns = now_ns_;
    for (auto& [image, history] : known_) {
        history.counts.emplace_back().seconds = interval.seconds;
        history.wait.reset();
        history.pending.reset();
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
            history->called_ns = now_ns_;
        }
    for (const Waiting::Part& part : interval.waits) {
        History* history = of(part.key.image);
        if (!history)
            continue;
        history->called_ns = now_ns_;
        const bool polls = part_of(part.key) == CallPart::poll;
        (polls ? history->counts.back().polling : history->counts.back().waiting)[part.key.tid] += part.new_ns;
        if (part.waiting && (!history->wait || history->wait->elapsed_ns < part.elapsed_ns))
            history->wait = part;
    }
    for (const driver_call& call : interval.driver_calls)
        if (History* history = of(call.key.image);
            history && (!history->pending || call.since_ns < history->pending->since_ns))
            history->pending = call;
    count_held(interval.holdings);
    launches_.clear();
    for (auto& [image, history] : known_) {
        if (history.counts.back().launches)
            history.launched_ns = interval.now_ns - static_cast<uint64_t>(interval.seconds * 1e9);
        end_interval(image, history, interval.seconds);
    }
    verdicts_.clear();
    for (auto& [image, history] : known_)
        judge(image, history, interval);
    const auto order = [](const Verdict& v) {
        return std::tuple(-static_cast<int>(v.severity), v.rule, std::string_view(v.name), v.process.pid);
    };
    std::ranges::sort(verdicts_, {}, order);
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

void Diagnosis::Streak::add(bool goes_on, bool is_over, double interval_seconds)
{
    constexpr double longest_pause = 2;
    pause = goes_on ? 0 : pause + interval_seconds;
    if (is_over || pause >= longest_pause)
        *this = {};
    else if (goes_on)
        seconds += interval_seconds;
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
    look_at_threads(image, history);
    std::array<bool, static_cast<size_t>(Calls::count)> fails{};
    for (const Counts& counts : history.counts) {
        for (const auto& [error, n] : counts.errors)
            fails.at(static_cast<size_t>(error.first)) = true;
        launches_[image] += counts.launches;
    }
    for (size_t i = 0; i < fails.size(); i++)
        history.failing_seconds.at(i) = fails.at(i) ? history.failing_seconds.at(i) + seconds : 0;
}

// How much of their waits they have spun: of those that have waited in the last seconds, so that the next interval has
// something to compare with.
void Diagnosis::look_at_threads(const ImageId& image, History& history)
{
    constexpr size_t threads_max = 64;
    Counts& last = history.counts.back();
    ByThread now;
    for (const Counts& counts : history.counts)
        for (const auto& [tid, ns] : counts.waiting) {
            if (now.size() >= threads_max || now.contains(tid))
                continue;
            const auto cpu_ns = thread_cpu_time_ns(static_cast<pid_t>(image.pid), static_cast<pid_t>(tid));
            if (!cpu_ns)
                continue;
            now[tid] = *cpu_ns;
            if (const auto before = history.thread_cpu_ns.find(tid); before != history.thread_cpu_ns.end())
                last.spinning[tid] =
                    spun_ns(last.waiting.contains(tid) ? last.waiting.at(tid) : 0,
                            *cpu_ns - std::min(*cpu_ns, before->second), static_cast<uint64_t>(last.seconds * 1e9));
        }
    history.thread_cpu_ns = std::move(now);
}

uint64_t spun_ns(uint64_t waiting_ns, uint64_t cpu_ns, uint64_t interval_ns)
{
    const uint64_t elsewhere_ns = interval_ns - std::min(interval_ns, waiting_ns);
    return std::min(waiting_ns, cpu_ns - std::min(cpu_ns, elsewhere_ns));
}

std::optional<uint64_t> Diagnosis::spinning_ns(const std::set<std::pair<uint32_t, uint32_t>>& threads) const
{
    uint64_t sum = 0;
    for (const auto& [pid, tid] : threads) {
        std::optional<uint64_t> of_thread;
        for (auto at = known_.lower_bound(ImageId{.pid = pid, .serial = 0}); at != known_.end() && at->first.pid == pid;
             ++at)
            if (!at->second.counts.empty())
                if (const auto& spinning = at->second.counts.back().spinning; spinning.contains(tid))
                    of_thread = of_thread.value_or(0) + spinning.at(tid);
        if (!of_thread)
            return {};
        sum += *of_thread;
    }
    return sum;
}

Signs Diagnosis::signs(const ImageId& image, const History& history, const Interval& interval) const
{
    Signs signs;
    ByThread launching, polling, waiting;
    std::map<Error, uint64_t> errors;
    uint64_t cpu_ns = 0;
    double cpu_seconds = 0;
    for (const Counts& counts : history.counts) {
        signs.seconds += counts.seconds;
        signs.launches += counts.launches;
        signs.grids += counts.grids;
        signs.small_grids += counts.small_grids;
        signs.captured += counts.captured;
        signs.captures += counts.captures;
        signs.instantiations += counts.instantiations;
        signs.copies += counts.copies;
        signs.small_copies += counts.small_copies;
        signs.synchronous += counts.synchronous;
        signs.polls += counts.polls;
        signs.allocations += counts.allocations;
        signs.refused += counts.refused;
        if (counts.refused)
            signs.refused_bytes = counts.refused_bytes;
        signs.frees += counts.frees;
        signs.grown_bytes += counts.grown_bytes;
        cpu_ns += counts.cpu_ns.value_or(0);
        cpu_seconds += counts.cpu_ns ? counts.seconds : 0;
        add_to(launching, counts.launching);
        add_to(polling, counts.polling);
        add_to(waiting, counts.waiting);
        for (size_t i = 0; i < counts.calls.size(); i++)
            signs.failing.at(i).calls += counts.calls.at(i);
        for (const auto& [error, n] : counts.errors)
            errors[error] += n;
    }
    std::map<Calls, uint64_t> most;
    for (const auto& [error, n] : errors) {
        Failing& failing = signs.failing.at(static_cast<size_t>(error.first));
        failing.failed += n;
        failing.seconds = history.failing_seconds.at(static_cast<size_t>(error.first));
        if (n > most[error.first]) {
            most[error.first] = n;
            failing.error = error.second;
        }
    }
    signs.launching_percent = percent(most_of(launching), signs.seconds);
    signs.polling_percent = percent(most_of(polling), signs.seconds);
    signs.waiting_percent = percent(most_of(waiting), signs.seconds);
    signs.cpu_percent = percent(cpu_ns, cpu_seconds);
    signs.capturing_seconds = history.capturing.seconds;
    signs.small_seconds = history.small.seconds;
    signs.growing_seconds = history.growing.seconds;
    if (history.wait) {
        const double elapsed = static_cast<double>(history.wait->elapsed_ns) / 1e9;
        signs.wait = {elapsed, std::string(wait_text(history.wait->key.wait.wait)), history.wait->earlier};
        const uint64_t since_ns = interval.now_ns - std::min(interval.now_ns, history.wait->elapsed_ns);
        // What the interval launched that the wait began in may have been before it.
        signs.idle_since = history.launched_ns < since_ns && history.counts.back().launches == 0;
    }
    if (history.pending && interval.now_ns > history.pending->since_ns)
        signs.driver_call = {static_cast<double>(interval.now_ns - history.pending->since_ns) / 1e9,
                             command_text(history.pending->key)};
    if (const auto found = interval.xids.find(image.pid); found != interval.xids.end())
        signs.xid = found->second.last;
    if (const auto place = most_copied_from(history); place && interval.function_of && copies_are_small(signs))
        signs.copied_from = interval.function_of(image, place->first, place->second);
    add_gpus(image, signs, interval.nvml, interval.gpus);
    return signs;
}

std::optional<Diagnosis::Place> Diagnosis::most_copied_from(const History& history)
{
    std::map<Place, uint64_t> sums;
    uint64_t all = 0;
    for (const Counts& counts : history.counts)
        for (const auto& [place, n] : counts.copied_from) {
            sums[place] += n;
            all += n;
        }
    const auto most = std::ranges::max_element(sums, {}, [](const auto& sum) { return sum.second; });
    return most != sums.end() && most->second * 2 > all ? std::optional(most->first) : std::nullopt;
}

std::set<int32_t> Diagnosis::stacks() const
{
    std::set<int32_t> all;
    for (const auto& [image, history] : known_)
        for (const Counts& counts : history.counts)
            for (const auto& [place, n] : counts.copied_from)
                all.insert(place.first);
    return all;
}

// Of the machine's numbers: CUDA's are each process's own.
void Diagnosis::add_gpus(const ImageId& image, Signs& signs, const NvmlFigures& nvml, const ProcessGpus& gpus) const
{
    const std::set<Gpu> mine = gpus.of(image).gpus;
    const auto is_on = [&](unsigned index) {
        return std::ranges::any_of(mine,
                                   [&](const Gpu& gpu) { return gpu.by == Gpu::By::index && gpu.number == index; });
    };
    for (const NvmlDeviceState& state : nvml.states()) {
        if (!is_on(state.index) || !state.memory_total || !state.memory_used)
            continue;
        const uint64_t free = *state.memory_total - std::min(*state.memory_total, *state.memory_used);
        if (!signs.free_bytes || free < *signs.free_bytes) {
            signs.free_bytes = free;
            signs.free_gpu = state.index;
        }
    }
    for (const Gpu& gpu : mine) {
        if (!gpu.of_machine())
            continue;
        uint64_t all = 0;
        std::pair<uint64_t, ImageId> most{};
        for (const auto& [other, launches] : launches_)
            if (gpus.of(other).gpus.contains(gpu)) {
                all += launches;
                if (launches > most.first && other.pid != image.pid)
                    most = {launches, other};
            }
        const double share = all ? 100 * static_cast<double>(most.first) / static_cast<double>(all) : 0;
        if (!most.first || (signs.neighbour && signs.neighbour->percent >= share))
            continue;
        const std::string owner = processes_.owner(most.second, {}).text();
        signs.neighbour = {gpu_text({gpu}),
                           fmt::format("{} ({}{}{})", processes_.info(most.second).comm, most.second.pid,
                                       owner.empty() ? "" : ", ", owner),
                           share};
    }
}

void Diagnosis::judge(const ImageId& image, History& history, const Interval& interval)
{
    const Signs now = signs(image, history, interval);
    history.free_bytes = now.free_bytes;
    for (const Rule& rule : rules()) {
        std::optional<Finding> found = rule.look(now);
        if (!found)
            continue;
        Verdict verdict{.process = image,
                        .name = processes_.info(image).comm,
                        .owner = processes_.owner(image, {}).text(),
                        .rule = &rule,
                        .severity = found->severity,
                        .words = std::move(found->words),
                        .next = std::string(rule.next)};
        if (const size_t at = verdict.next.find("PID"); at != std::string::npos)
            verdict.next.replace(at, 3, std::to_string(image.pid));
        if (rule.name == "hangs") {
            verdict.tid = history.wait->key.tid;
            verdict.stack = history.wait->key.stack;
            verdict.caller = history.wait->key.caller;
        } else if (!now.copied_from.empty() && rule.name == "copies") {
            std::tie(verdict.stack, verdict.caller) = most_copied_from(history).value_or(Place{-1, 0});
        }
        verdicts_.push_back(std::move(verdict));
    }
}

std::optional<double> Diagnosis::quiet_seconds(const std::set<ImageId>& images) const
{
    uint64_t last_ns = 0;
    for (const ImageId& image : images)
        if (const auto found = known_.find(image); found != known_.end())
            last_ns = std::max(last_ns, found->second.called_ns);
    if (!last_ns || last_ns == now_ns_)
        return {};
    return static_cast<double>(now_ns_ - last_ns) / 1e9;
}

std::optional<double> Diagnosis::cpu_percent(const std::set<ImageId>& images) const
{
    std::optional<double> sum;
    for (const ImageId& image : images)
        if (const auto found = known_.find(image); found != known_.end() && !found->second.counts.empty()) {
            const Counts& last = found->second.counts.back();
            if (last.cpu_ns)
                sum = sum.value_or(0) + percent(*last.cpu_ns, last.seconds);
        }
    return sum;
}

std::optional<double> Diagnosis::growth(const std::set<ImageId>& images) const
{
    std::optional<double> sum;
    for (const ImageId& image : images) {
        const auto found = known_.find(image);
        if (found == known_.end())
            continue;
        int64_t bytes = 0;
        double seconds = 0;
        for (const Counts& counts : found->second.counts) {
            bytes += counts.grown_bytes;
            seconds += counts.seconds;
        }
        if (seconds > 0)
            sum = sum.value_or(0) + static_cast<double>(bytes) / seconds;
    }
    return sum;
}

std::optional<double> Diagnosis::full_in_seconds(const std::set<ImageId>& images) const
{
    const double rate = growth(images).value_or(0);
    std::optional<uint64_t> least;
    for (const ImageId& image : images)
        if (const auto found = known_.find(image); found != known_.end() && found->second.free_bytes)
            least = std::min(least.value_or(UINT64_MAX), *found->second.free_bytes);
    if (rate <= 0 || !least)
        return {};
    return static_cast<double>(*least) / rate;
}

void Diagnosis::forget(const std::set<ImageId>& images)
{
    for (const ImageId& image : images) {
        known_.erase(image);
        std::erase_if(verdicts_,
                      [&](const Verdict& verdict) { return !(verdict.process < image) && !(image < verdict.process); });
    }
}

} // namespace gpusnoop
