// SPDX-License-Identifier: Apache-2.0
// Time of threads that make CUDA calls, split by activity (launch, wait, CPU, lock, ...), since the last report.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/thread_time.h"
#include "rows/call_view.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusnoop {

using TimeParts = std::array<uint64_t, TIME_PARTS>; // ns

// Names of an activity: column header in tables, and key in JSON.
struct TimePartName {
    std::string_view header, key;
};

inline constexpr auto time_part_names = [] {
    std::array<TimePartName, TIME_PARTS> of{};
    of[TIME_LAUNCH] = {"LAUNCH%", "launch_ns"};
    of[TIME_COPY] = {"COPY%", "copy_ns"};
    of[TIME_WAIT] = {"WAIT%", "wait_ns"};
    of[TIME_MEMORY] = {"MEM%", "memory_ns"};
    of[TIME_CALL] = {"CALL%", "call_ns"};
    of[TIME_CPU] = {"CPU%", "cpu_ns"};
    of[TIME_RUNQ] = {"RUNQ%", "runq_ns"};
    of[TIME_THROTTLED] = {"THROT%", "throttled_ns"};
    of[TIME_HARDIRQ] = {"HIRQ%", "hardirq_ns"};
    of[TIME_SOFTIRQ] = {"SIRQ%", "softirq_ns"};
    of[TIME_STOPPED] = {"STOP%", "stopped_ns"};
    of[TIME_LOCK] = {"LOCK%", "lock_ns"};
    of[TIME_POLL] = {"POLL%", "poll_ns"};
    of[TIME_PIPE] = {"PIPE%", "pipe_ns"};
    of[TIME_SOCKET] = {"SOCK%", "socket_ns"};
    of[TIME_DISK] = {"DISK%", "disk_ns"};
    of[TIME_FAULT] = {"FAULT%", "fault_ns"};
    of[TIME_SLEEP] = {"SLEEP%", "sleep_ns"};
    of[TIME_DRIVER] = {"DRIVER%", "driver_ns"};
    of[TIME_CHILD] = {"CHILD%", "child_ns"};
    of[TIME_OTHER] = {"OTHER%", "other_ns"};
    return of;
}();

struct TimeSums {
    uint64_t wall_ns = 0; // elapsed time, the sum of `ns`
    TimeParts ns{};
    uint64_t blocked = 0;
    uint64_t preempted = 0;
    uint64_t faults = 0;      // major page faults
    uint64_t collectives = 0; // NCCL calls; 0 if they are not traced

    TimeSums& operator+=(const TimeSums& other);
    TimeSums operator-(const TimeSums& earlier) const;
};

// CPU time of threads from schedstat, used if context switches are not traced (--cheap). The kernel updates schedstat
// only at ticks and context switches, so an increase may exceed the elapsed time; the excess is carried over to the
// next report.
struct CpuTime {
    uint64_t wall_ns = 0; // elapsed time of the threads whose CPU time is known; 0 if there are none
    uint64_t used_ns = 0;
    uint64_t ready_ns = 0; // time spent in a run queue, waiting for a CPU
    uint64_t turns = 0;    // number of times that these threads were scheduled

    uint64_t off_ns() const { return wall_ns - used_ns - ready_ns; }
    CpuTime& operator+=(const CpuTime& other);
};

// Times of one thread.
struct ThreadTime {
    uint32_t place = 0; // the thread's index in the kernel side's tables
    bool ended = false;
    ImageId image{};
    cgroups cgroup{}; // cgroups of the thread at its first call
    uint32_t tid = 0;
    std::array<char, 16> comm{}; // the thread's name
    uint8_t vendors = 0;         // bit mask, as in WhoSeen
    // last system call in which the thread blocked for an unknown reason (TIME_OTHER)
    std::optional<uint32_t> other_syscall;
    uint32_t collective = 0; // probe number of the last NCCL call; 0 if there was none or they are not traced
    TimeSums sums;
    CpuTime cpu{};
};

class ThreadTimes {
public:
    // table_fd: the kernel side's table. free_fd: queue of the free places (indices) in it. places_taken: number of
    // places used so far. cheap: context switches are not traced.
    ThreadTimes(int table_fd, int free_fd, __u32& places_taken, bool cheap = false)
        : free_fd_(free_fd), table_(table_fd, PLACES_MAX), places_taken_(places_taken), cheap_(cheap)
    {}

    // Returns each thread's times since the last drain(). now_ns: current CLOCK_MONOTONIC.
    std::vector<ThreadTime> drain(uint64_t now_ns);
    // Returns the process of the thread at this place. nullopt if the place is free, or if the kernel side changes
    // the thread's times during every attempt to copy them.
    std::optional<ImageId> image_of(uint32_t place) const;
    // Frees the places of the threads in `drained` that have ended, so that new threads can use these places.
    void forget_ended(const std::vector<ThreadTime>& drained);

private:
    bool has_begun(uint32_t place) const;
    std::optional<thread_time> consistent_copy(uint32_t place) const;
    void free_place(uint32_t place);
    CpuTime cpu_time(uint32_t place, const thread_time& time, uint64_t wall_ns);

    int free_fd_;
    SharedArray<thread_time> table_;
    __u32& places_taken_;
    bool cheap_;
    std::vector<TimeSums> reported_;    // totals at the last drain(), indexed by place
    std::vector<CpuTime> reported_cpu_; // CPU times that drain() has returned so far, by place
    size_t schedstat_reads_ = 0;        // number of schedstat files read in the current drain()
};

// Returns the elements of `times` by ThreadTime::place.
std::unordered_map<uint32_t, const ThreadTime*> by_place(const std::vector<ThreadTime>& times);
// Returns the (pid, tid) of each thread that has not ended.
std::set<std::pair<uint32_t, uint32_t>> threads_of(const std::vector<ThreadTime>& times);

struct TimeKey {
    WhoKey who;
    auto operator<=>(const TimeKey&) const = default;
};

struct TimeGroup {
    WhoSeen who;
    std::set<std::pair<uint32_t, uint32_t>> threads; // pid, tid
    std::optional<uint32_t> other_syscall;           // ThreadTime::other_syscall of the thread with the most TIME_OTHER
    uint64_t other_ns = 0;                           // TIME_OTHER of that thread
    TimeSums sums;
    CpuTime cpu;

    void add(const ThreadTime& time);
};

std::map<TimeKey, TimeGroup> group_times(const std::vector<ThreadTime>& times, const CallView& view,
                                         Processes& processes);

} // namespace gpusnoop
