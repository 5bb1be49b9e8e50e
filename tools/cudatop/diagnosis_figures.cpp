// SPDX-License-Identifier: Apache-2.0
// Values that the diagnosis computes from the counts of the last few seconds: inputs of the rules (Signs), and column
// values.
#include "tools/cudatop/diagnosis.hpp"

#include "gpu/driver_names.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

std::string_view wait_text(uint8_t wait)
{
    constexpr std::array<std::string_view, WAITS> texts = {
        "the GPU", "a stream", "the GPU", "an event", "a value", "a synchronous copy", "the GPU before freeing memory",
        "work"};
    return wait < texts.size() ? texts[wait] : texts[WAIT_NONE];
}

uint64_t most_of(const std::map<uint32_t, uint64_t>& by_thread)
{
    uint64_t most = 0;
    for (const auto& [tid, ns] : by_thread)
        most = std::max(most, ns);
    return most;
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

Signs Diagnosis::signs(const ImageId& image, const History& history, const Interval& interval) const
{
    Signs signs;
    ByThread launching, waiting, starving, launched, off_cpu;
    std::map<Error, uint64_t> errors;
    uint64_t cpu_ns = 0;
    double cpu_seconds = 0, starving_seconds = 0, gpu_percent = 0, gpu_seconds = 0;
    MachineLoad loads;
    unsigned times = 0;
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
        add_to(waiting, counts.waiting);
        add_to(starving, counts.starving);
        add_to(launched, counts.launched);
        add_to(off_cpu, counts.off_cpu);
        starving_seconds += counts.starving.empty() ? 0 : counts.seconds;
        gpu_percent += counts.gpu_percent.value_or(0) * counts.seconds;
        gpu_seconds += counts.gpu_percent ? counts.seconds : 0;
        if (counts.load) {
            loads.running += counts.load->running;
            loads.cpus += counts.load->cpus;
            times++;
        }
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
    signs.waiting_percent = percent(most_of(waiting), signs.seconds);
    signs.cpu_percent = percent(cpu_ns, cpu_seconds);
    signs.starving_percent = percent(most_of(starving), starving_seconds);
    if (const auto launcher = std::ranges::max_element(launched, {}, [](const auto& item) { return item.second; });
        launcher != launched.end() && off_cpu.contains(launcher->first))
        signs.off_cpu_percent = percent(off_cpu.at(launcher->first), starving_seconds);
    if (gpu_seconds > 0)
        signs.gpu_percent = gpu_percent / gpu_seconds;
    if (signs.starving_percent > 1)
        signs.cpus = allowed_cpus(static_cast<pid_t>(image.pid));
    if (times)
        signs.load = MachineLoad{loads.running / times, loads.cpus / times};
    signs.capturing_seconds = history.capturing.lasted();
    signs.small_seconds = history.small.seconds;
    signs.growing_seconds = history.growing.lasted();
    signs.has_nccl = history.has_nccl.value_or(false);
    if (history.wait) {
        const double elapsed = static_cast<double>(history.wait->elapsed_ns) / 1e9;
        signs.wait = {elapsed, std::string(wait_text(history.wait->key.wait.wait)), history.wait->earlier};
        signs.suspension = history.suspension;
        signs.suspended_seconds = std::min(elapsed, static_cast<double>(history.suspended_ns) / 1e9);
        const uint64_t since_ns = interval.now_ns - std::min(interval.now_ns, history.wait->elapsed_ns);
        // A launch in the interval in which the wait began is ignored, because it may have been made before the wait.
        signs.idle_since = history.launched_ns < since_ns && history.counts.back().launches == 0;
    }
    if (history.stuck)
        signs.stuck = {history.stuck->seconds, history.stuck->function};
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

// Compares GPUs only by machine-wide numbers, because CUDA's numbers differ between processes.
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
        if (!gpu.is_machine_wide())
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

std::optional<Diagnosis::Scheduling> Diagnosis::scheduling(const std::set<ImageId>& images) const
{
    std::optional<Scheduling> sum;
    for (const ImageId& image : images)
        if (const auto found = known_.find(image); found != known_.end() && !found->second.counts.empty()) {
            const Counts& last = found->second.counts.back();
            if (last.starving.empty() || last.seconds <= 0)
                continue;
            if (!sum)
                sum.emplace();
            for (const auto& [tid, ns] : last.starving)
                sum->waited_percent += percent(ns, last.seconds);
            sum->turns_per_second += static_cast<double>(last.turns) / last.seconds;
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

} // namespace gpusnoop
