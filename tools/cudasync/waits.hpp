// SPDX-License-Identifier: Apache-2.0
// Waits of an interval, including unfinished ones, in groups.
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
    uint64_t waiting = 0;  // calls that have not returned
    uint64_t earlier = 0;  // how many of `waiting` began before tracing; timed from the start of tracing
    uint64_t ended = 0;    // calls that never return, because their thread ended
    uint64_t ended_ns = 0; // whole duration of the calls in `ended`
    uint64_t total_ns = 0; // in this interval; a wait that spans several intervals has a part in each
    uint64_t max_ns = 0;   // the longest wait so far, over all intervals that it spans
    Histogram duration;    // of calls that returned

    void add(const CallDelta& delta);
};

// "stream", "poll"
std::string_view wait_name(uint8_t wait);

// Waits that span the end of an interval. Each has a part in every interval that it spans, including the last one.
class Waiting {
public:
    struct Shared { // variables of the BPF object that have these names
        __u64& reported_ns;
        bool& has_long_wait;
        __u32& places_taken;
    };
    // table_fd: the kernel side's table of threads. free_fd: the queue of its free places. Throws Error.
    Waiting(int table_fd, int free_fd, Shared shared) : free_fd_(free_fd), table_(table_fd, 1), shared_(shared) {}

    // Ends an interval; call drain() next. Returns its length, or `first` for the first interval.
    uint64_t end_interval(uint64_t now_ns, uint64_t first);

    struct Part {
        call_key key;
        uint64_t elapsed_ns;   // time from the start of the wait to the end of the interval
        uint64_t new_ns;       // time of the wait within the interval
        bool waiting;          // it has not returned
        bool ended = false;    // it never returns, because its thread has ended
        bool earlier = false;  // it began before tracing; times are counted from the start of tracing
        uint64_t since_ns = 0; // CLOCK_MONOTONIC
    };
    // Returns the parts in the interval that has ended; waits shorter than least_ns are left out. Takes a few
    // milliseconds (ProgramBarrier). Returns none if the kernel refuses the barrier: the interval then extends to the
    // next report.
    std::vector<Part> drain(uint64_t least_ns);

    // All threads of the process have exited: their unfinished calls end.
    void exited(uint32_t pid, uint64_t now_ns) { exits_[pid] = now_ns; }
    // The process called exec: unfinished calls end, although the first thread keeps its id.
    void executed(uint32_t pid, uint64_t time_ns) { execs_[pid] = time_ns; }

    // Frees the places of ended threads whose calls have been reported. Call this once a second, because it also
    // detects that threads have ended.
    void forget_ended();

    // Threads that have waited since tracing began, by process.
    std::map<pid_t, std::set<uint32_t>> threads();

private:
    enum class State : uint8_t { waiting, returned, ended };
    // Adds the part of a call that is in the interval.
    void add_part(std::vector<Part>& parts, const wait_call& call, uint64_t least_ns, State state) const;
    std::optional<uint64_t> end_of(const wait_call& call, uint64_t thread_start_ns) const;
    bool collect_ended(volatile waiting& place, const wait_call& call);
    uint32_t places(); // number of places in use so far; the rest of the table stays unmapped and needs no memory

    int free_fd_;
    SharedArray<waiting> table_;
    Shared shared_;
    ProgramBarrier barrier_;
    uint64_t begin_ns_ = 0; // of the interval, like end_ns_
    uint64_t end_ns_ = 0;
    std::map<uint32_t, uint64_t> exits_; // by pid, since forget_ended()
    std::map<uint32_t, uint64_t> execs_;
    std::vector<wait_call> ended_; // not yet reported
};

class WaitGroups : public CallGroups<WaitSettings, WaitKey, WaitGroup> {
public:
    WaitGroups(const WaitSettings& settings, Processes& processes) : CallGroups(settings, processes) {}

    void add(const CallDelta& delta) { group_with_thread(delta.key).add(delta); }
    void add(const Waiting::Part& part);

private:
    WaitGroup& group_with_thread(const call_key& call); // adds the thread to the group
};

} // namespace gpusnoop
