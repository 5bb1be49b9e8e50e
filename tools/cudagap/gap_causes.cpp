// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/gap_causes.hpp"

#include "tools/cudagap/gaps.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>

namespace gpusnoop {

bool is_wait_for_thread(uint32_t part)
{
    return part == TIME_LOCK || part == TIME_POLL || part == TIME_PIPE || part == TIME_SOCKET || part == TIME_CHILD;
}

uint32_t largest_part(const TimeParts& parts)
{
    return static_cast<uint32_t>(std::ranges::max_element(parts) - parts.begin());
}

uint32_t largest_end(const BlockEnds& ends)
{
    const auto largest = std::ranges::max_element(ends, {}, [](const auto& end) { return end.second; });
    return largest == ends.end() ? uint32_t{WOKEN_BY_UNKNOWN} : largest->first;
}

std::string_view block_end_words(uint32_t by, bool several)
{
    switch (by) {
    case WOKEN_BY_TIMEOUT:
        return several ? "until they time out" : "until it times out";
    case WOKEN_BY_SIGNAL:
        return "until a signal arrives (timer or I/O)";
    case WOKEN_BY_INTERRUPT:
        return "until an interrupt (network, timer or other device)";
    }
    return {};
}

std::string_view block_end_name(uint32_t by)
{
    constexpr std::array<std::string_view, 5> names = {"", "thread", "timeout", "signal", "interrupt"};
    static_assert(names.size() == WOKEN_BY_INTERRUPT + 1);
    return by < names.size() ? names[by] : names[WOKEN_BY_UNKNOWN];
}

void WaitedFiles::add(const std::string& file, uint64_t ns)
{
    constexpr size_t max_folders = 256, max_files = 1000;
    if (file.empty())
        return;
    const size_t slash = file.rfind('/');
    const std::string folder = slash == std::string::npos ? std::string() : file.substr(0, slash);
    if (folders_.size() >= max_folders && !folders_.contains(folder))
        return;
    OfFolder& of = folders_[folder];
    of.ns += ns;
    if (of.files.size() < max_files)
        of.files.insert(file);
}

std::string WaitedFiles::top_folder() const
{
    if (folders_.empty())
        return {};
    const auto& files =
        std::ranges::max_element(folders_, {}, [](const auto& folder) { return folder.second.ns; })->second.files;
    return files.size() == 1 ? *files.begin() : fmt::format("{} and {} more", *files.begin(), files.size() - 1);
}

void GapCauses::add(const gap_record& gap, const GapFiles& files)
{
    OfThread& thread = threads_[gap.tid];
    thread.files.add(files[0], gap.gap.waker.blocked_ns);
    if (gap.cpus) {
        thread.gaps++;
        thread.running += gap.running;
        thread.cpus += gap.cpus;
    }
    const waker* waker = &gap.gap.waker;
    if (waker->by == WOKEN_BY_UNKNOWN)
        return;
    if (waker->by != WOKEN_BY_THREAD) {
        GapCause& cause = thread.causes[{waker->by, ""}];
        cause.by = waker->by;
        cause.blocked_ns += waker->blocked_ns;
        return;
    }
    const uint32_t known = std::min<uint32_t>(gap.known, WAKERS);
    uint32_t step = 0; // index of the last waker in the chain, in which each waker waited for the next
    while (step + 1 < known && is_wait_for_thread(largest_part(parts_of(gap.wakers[step]))))
        waker = &gap.wakers[step++].waker;
    GapCause& cause = thread.causes[{WOKEN_BY_THREAD, comm_of(*waker)}];
    cause.comm = comm_of(*waker);
    cause.pids.insert(waker->pid);
    cause.blocked_ns += gap.gap.waker.blocked_ns;
    cause.indirect |= step > 0;
    if (!known)
        return;
    const auto& last = gap.wakers[step].waker;
    cause.ends[last.by] += last.blocked_ns;
    cause.files.add(files.at(step + 1), last.blocked_ns);
    std::ranges::transform(cause.parts, parts_of(gap.wakers[step]), cause.parts.begin(), std::plus<>());
}

std::optional<GapCause> GapCauses::worst(uint32_t tid) const
{
    const auto thread = threads_.find(tid);
    if (thread == threads_.end() || thread->second.causes.empty())
        return std::nullopt;
    return std::ranges::max_element(thread->second.causes, {},
                                    [](const auto& cause) { return cause.second.blocked_ns; })
        ->second;
}

std::string GapCauses::files(uint32_t tid) const
{
    const auto thread = threads_.find(tid);
    return thread == threads_.end() ? std::string() : thread->second.files.top_folder();
}

std::optional<GapCauses::Load> GapCauses::load(uint32_t tid) const
{
    const auto thread = threads_.find(tid);
    if (thread == threads_.end() || !thread->second.gaps)
        return std::nullopt;
    const auto of = static_cast<double>(thread->second.gaps);
    return Load{static_cast<double>(thread->second.running) / of, static_cast<double>(thread->second.cpus) / of};
}

} // namespace gpusnoop
