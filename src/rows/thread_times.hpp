// SPDX-License-Identifier: Apache-2.0
// Where the time of threads that call has gone since the last report, grouped the way the user wants to see it.
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

// What a part is called in tables and in JSON.
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
    uint64_t wall_ns = 0; // by the clock; the parts add up to it
    TimeParts ns{};
    uint64_t blocked = 0;
    uint64_t preempted = 0;
    uint64_t faults = 0;      // major ones
    uint64_t collectives = 0; // calls of NCCL, where they are asked for

    TimeSums& operator+=(const TimeSums& other);
    TimeSums operator-(const TimeSums& earlier) const;
};

// Where switches are not followed: what the scheduler has in its own account of a thread. It is as old as the thread's
// last switch or tick, so that these may be more than the time by the clock: the rest is told with the next report.
struct CpuTime {
    uint64_t wall_ns = 0; // by the clock, of the threads of which it is known; 0: of none
    uint64_t used_ns = 0;
    uint64_t ready_ns = 0; // without a CPU
    uint64_t turns = 0;    // times that they were given one

    uint64_t off_ns() const { return wall_ns - used_ns - ready_ns; }
    CpuTime& operator+=(const CpuTime& other);
};

// Of one thread.
struct ThreadTime {
    uint32_t place = 0; // in the kernel side's tables
    bool ended = false;
    ImageId image{};
    cgroups cgroup{}; // when it first called
    uint32_t tid = 0;
    std::array<char, 16> comm{};           // of the thread, as the kernel side has it
    uint8_t vendors = 0;                   // as in WhoSeen
    std::optional<uint32_t> other_syscall; // the last that it was blocked in for no reason that has a name
    uint32_t collective = 0;               // probe number of the last call of NCCL; 0: none, or not asked for
    TimeSums sums;
    CpuTime cpu{};
};

class ThreadTimes {
public:
    // The kernel side's table, its queue of free places in it, and how many have been taken.
    // cheap: switches are not followed.
    ThreadTimes(int table_fd, int free_fd, __u32& places_taken, bool cheap = false)
        : free_fd_(free_fd), table_(table_fd, PLACES_MAX), places_taken_(places_taken), cheap_(cheap)
    {}

    // What has come since the last call, up to now (CLOCK_MONOTONIC); that of threads that have ended, once.
    std::vector<ThreadTime> drain(uint64_t now_ns);
    // Whose thread has that place; nullopt: nobody's.
    std::optional<ImageId> image_of(uint32_t place) const;
    // Others get the places of those of them that have ended: nothing is to be looked up by these any more.
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
    std::vector<TimeSums> reported_;    // by place
    std::vector<CpuTime> reported_cpu_; // the same, of CPUs
    size_t schedstat_reads_ = 0;        // threads that /proc has been asked for, in this report
};

// By their places.
std::unordered_map<uint32_t, const ThreadTime*> by_place(const std::vector<ThreadTime>& times);
// Their pids and tids, of those that have not ended.
std::set<std::pair<uint32_t, uint32_t>> threads_of(const std::vector<ThreadTime>& times);

struct TimeKey {
    WhoKey who;
    auto operator<=>(const TimeKey&) const = default;
};

struct TimeGroup {
    WhoSeen who;
    std::set<std::pair<uint32_t, uint32_t>> threads; // pid, tid
    std::optional<uint32_t> other_syscall;           // of the thread with the most of that
    uint64_t other_ns = 0;                           // of that thread
    TimeSums sums;
    CpuTime cpu;

    void add(const ThreadTime& time);
};

std::map<TimeKey, TimeGroup> group_times(const std::vector<ThreadTime>& times, const CallView& view,
                                         Processes& processes);

} // namespace gpusnoop
