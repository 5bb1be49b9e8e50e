// SPDX-License-Identifier: Apache-2.0
// Gaps between calls that launch, by their length: how many, and where their time went.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/gap.h"
#include "names/kernel_names.hpp"
#include "names/kernel_text.hpp"
#include "names/naming.hpp"
#include "rows/histogram.hpp"
#include "rows/launch_groups.hpp"
#include "rows/thread_times.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace gpusnoop {

TimeParts parts_of(const period& period);
std::string comm_of(const waker& waker);

struct GapKey {
    WhoKey who;
    uint64_t stream = 0; // where the view tells streams apart
    auto operator<=>(const GapKey&) const = default;
};

struct GapGroup {
    WhoSeen who;
    Histogram gaps;
    std::map<unsigned, TimeParts> parts; // by bucket
};

class GapCounts {
public:
    // The kernel side's table, and that of gaps that streams are in.
    GapCounts(int counts_fd, int streams_fd) : table_(counts_fd), streams_(streams_fd) {}

    // What has come since the last call, of threads that have just been drained; then those that have ended are
    // forgotten.
    std::map<GapKey, GapGroup> drain(const std::vector<ThreadTime>& times, const CallView& view, Processes& processes);

private:
    using Key = std::tuple<uint32_t, uint32_t, uint64_t>; // place, bucket, stream

    void forget(const std::set<uint32_t>& places);

    HashTable<gap_key, gap_count> table_;
    HashTable<stream_place, open_period> streams_;
    std::map<Key, gap_count> told_;
};

// Threads that the kernel side follows because they woke one that calls.
class WakingThreads {
public:
    // marks: how many threads the kernel side looks at, by their id.
    WakingThreads(int threads_fd, std::span<__u32> marks) : table_(threads_fd), marks_(marks) {}

    // Those that have not done so for long make room.
    void forget_idle(uint64_t now_ns);

private:
    HashTable<uint32_t, waking_thread> table_;
    std::span<__u32> marks_;
    uint64_t looked_ns_ = 0;
};

// What was launched before and after a gap, by name.
struct GapLaunch {
    gap_launch call{};
    KernelName kernel{}; // or host function; empty: not known

    // "kernel", "kernels of several devices", "graph", "host function"
    std::string_view what() const;
    // "vecadd(float*)", "[graph 0x...]", "kernel 0x... without a name"; how: as NameOptions has it.
    std::string text(std::string_view how) const;
};

struct GapLaunches {
    GapLaunch before, after;
};

// The names, and what has none yet.
class LaunchNames {
public:
    explicit LaunchNames(const NameOptions& options, WaitBudget* waits = nullptr) // see Reader
        : names_(options.cache_folder(), waits)
    {}

    void expect(pid_t pid) { names_.expect(pid); }
    // A record of the kernel side's, with its name behind it.
    void learn(const name_record& record, size_t size) { names_.learn(record, size); }
    // The descriptor of their map, as KernelNames takes it.
    void read_unsent_from(int map_fd) { names_.read_unsent_from(map_fd); }
    uint64_t lost_since_last() { return names_.lost_since_last(); }
    GapLaunches of(const gap_record& gap);
    // Once a second: whether to hold the probes that only teach names.
    bool tick();
    void forget(const ImageId& image);

private:
    GapLaunch named(const ImageId& image, const gap_launch& launch);

    KernelNames names_;
    UnnamedKernels unnamed_;
    NamingSchedule naming_;
};

} // namespace gpusnoop
