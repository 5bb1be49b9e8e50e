// SPDX-License-Identifier: Apache-2.0
// Gaps between launches: their number by length, how the threads spent that time, and the names of the launches before
// and after each gap.
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
    uint64_t stream = 0; // 0 unless grouped by stream
    auto operator<=>(const GapKey&) const = default;
};

struct GapGroup {
    WhoSeen who;
    Histogram gaps;
    std::map<unsigned, TimeParts> parts; // how the threads spent their gaps, by bucket of `gaps`
};

class GapCounts {
public:
    // counts_fd: the map of gap counts; streams_fd: the map of streams with an open gap.
    GapCounts(int counts_fd, int streams_fd) : table_(counts_fd), streams_(streams_fd) {}

    // Returns the gaps since the last drain, for the threads in `times`. Forgets exited threads.
    std::map<GapKey, GapGroup> drain(const std::vector<ThreadTime>& times, const CallView& view, Processes& processes);

private:
    using Key = std::tuple<uint32_t, uint32_t, uint64_t>; // place, bucket, stream

    void forget(const std::set<uint32_t>& places);

    HashTable<gap_key, gap_count> table_;
    HashTable<stream_place, open_period> streams_;
    std::map<Key, gap_count> previous_;
};

// Threads that the kernel side follows because they woke a CUDA thread, directly or through other threads.
class WakingThreads {
public:
    // marks[i] is the number of followed threads with a thread id of i modulo marks.size().
    WakingThreads(int threads_fd, std::span<__u32> marks) : table_(threads_fd), marks_(marks) {}

    // Removes threads that have not woken a CUDA thread for 60 s.
    void forget_idle(uint64_t now_ns);

private:
    HashTable<uint32_t, waking_thread> table_;
    std::span<__u32> marks_;
    uint64_t last_scan_ns_ = 0;
};

// A launch before or after a gap.
struct GapLaunch {
    gap_launch call{};
    KernelName kernel{}; // name of the kernel or host function; empty if not known

    // "kernel", "kernels of several devices", "graph", "host function"
    std::string_view type() const;
    // "vecadd(float*)", "[graph 0x...]", "kernel 0x... (name unknown)". form: see NameOptions.
    std::string text(std::string_view form) const;
};

struct GapLaunches {
    GapLaunch before, after;
};

// Finds the names of launched kernels, and retries until they are known.
class LaunchNames {
public:
    explicit LaunchNames(const NameOptions& options, WaitBudget* waits = nullptr) // waits: see class Reader
        : names_(options.cache_folder(), waits)
    {}

    void expect(pid_t pid) { names_.expect(pid); }
    // record: a record from the kernel side; the name follows it in memory.
    void learn(const name_record& record, size_t size) { names_.learn(record, size); }
    // See KernelNames.
    void read_unsent_from(int map_fd) { names_.read_unsent_from(map_fd); }
    uint64_t lost_since_last() { return names_.lost_since_last(); }
    GapLaunches of(const gap_record& gap);
    // Call this once a second. Returns true while the on-demand naming probes should be attached.
    bool tick();
    void forget(const ImageId& image);

private:
    GapLaunch named(const ImageId& image, const gap_launch& launch);

    KernelNames names_;
    UnnamedKernels unnamed_;
    NamingSchedule naming_;
};

} // namespace gpusnoop
