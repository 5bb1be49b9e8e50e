// SPDX-License-Identifier: Apache-2.0
// Groups of the waits in an interval, including unfinished waits.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/probe.h"
#include "bpf/shared/wait.h"
#include "rows/call_sums.hpp"
#include "rows/calls.hpp"
#include "rows/histogram.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

struct WaitSettings : CallSettings {
    bool wait = false; // group by kind of wait
};

struct WaitKey : CallKey {
    uint8_t wait = WAIT_NONE;
    void set(const WaitSettings& settings, const call_key& call);
    auto operator<=>(const WaitKey&) const = default;
};

struct WaitGroup {
    WhoSeen who;
    std::set<std::pair<uint32_t, uint32_t>> threads; // pid, tid
    uint64_t calls = 0;                              // calls that returned
    uint64_t not_ready = 0;                          // polls that returned not ready
    uint64_t errors = 0;
    uint64_t waiting = 0;  // calls that have not returned yet
    uint64_t earlier = 0;  // how many of `waiting` began before tracing; their time counts from the start of tracing
    uint64_t ended = 0;    // calls that never returned, because their thread ended
    uint64_t ended_ns = 0; // total duration of the calls in `ended`
    uint64_t total_ns = 0; // time within this interval; a wait that spans several intervals adds to each
    uint64_t max_ns = 0;   // duration of the longest wait, including its time in earlier intervals
    Histogram duration;    // durations of calls that returned

    void add(const CallDelta& delta);
};

// "stream", "poll"
std::string_view wait_name(uint8_t wait);

// Waits that span the end of an interval. Such a wait is split into one part for each interval in which it runs.
class Waiting {
public:
    struct Shared { // BPF variables with these names
        __u64& reported_ns;
        bool& has_long_wait;
        __u32& places_taken;
    };
    // table_fd: the kernel side's table of threads. free_fd: the queue of free places in the table. Throws Error.
    Waiting(int table_fd, int free_fd, Shared shared) : free_fd_(free_fd), table_(table_fd, 1), shared_(shared) {}

    // Ends the current interval; call drain() next. Returns the interval's length, or `first` for the first interval.
    uint64_t end_interval(uint64_t now_ns, uint64_t first);

    struct Part {
        call_key key;
        uint64_t elapsed_ns;   // from the start of the wait to the end of the interval
        uint64_t new_ns;       // time waited within the interval
        bool waiting;          // the call has not returned
        bool ended = false;    // the call never returned, because its thread has ended
        bool earlier = false;  // the call began before tracing; its times count from the start of tracing
        uint64_t since_ns = 0; // start of the call, CLOCK_MONOTONIC
    };
    // Returns the parts in the interval that has ended, without waits shorter than least_ns. Takes a few milliseconds
    // (ProgramBarrier). If the kernel refuses the barrier, returns no parts, and the interval extends to the next
    // report.
    std::vector<Part> drain(uint64_t least_ns);

    // Call this when all threads of the process have exited, which ends their unfinished calls.
    void exited(uint32_t pid, uint64_t now_ns) { exits_[pid] = now_ns; }
    // Call this when the process has called exec, which ends all unfinished calls, although the main thread keeps its
    // id.
    void executed(uint32_t pid, uint64_t time_ns) { execs_[pid] = time_ns; }

    // Detects threads that have ended, and frees their places in the table once their calls have been reported. Call
    // this once a second.
    void forget_ended();

    // Threads that have made a wait since tracing began, by process.
    std::map<pid_t, std::set<uint32_t>> threads();

private:
    enum class State : uint8_t { waiting, returned, ended };
    // Adds the part of the call that falls into the interval.
    void add_part(std::vector<Part>& parts, const wait_call& call, uint64_t least_ns, State state) const;
    std::optional<uint64_t> end_of(const wait_call& call, uint64_t thread_start_ns) const;
    bool collect_ended(volatile waiting& place, const wait_call& call);
    uint32_t places(); // number of places in the table that were used so far; the rest of it stays unmapped to save
                       // memory

    int free_fd_;
    SharedArray<waiting> table_;
    Shared shared_;
    ProgramBarrier barrier_;
    uint64_t begin_ns_ = 0; // start of the interval, which ends at end_ns_
    uint64_t end_ns_ = 0;
    std::map<uint32_t, uint64_t> exits_; // time of exit by pid; only exits since the last call of forget_ended()
    std::map<uint32_t, uint64_t> execs_;
    std::vector<wait_call> ended_; // ended calls that have not been reported yet
};

class WaitGroups : public CallGroups<WaitSettings, WaitKey, WaitGroup> {
public:
    WaitGroups(const WaitSettings& settings, Processes& processes) : CallGroups(settings, processes) {}

    void add(const CallDelta& delta) { group_with_thread(delta.key).add(delta); }
    void add(const Waiting::Part& part);

private:
    WaitGroup& group_with_thread(const call_key& call); // adds the call's thread to its group, and returns the group
};

} // namespace gpusnoop
