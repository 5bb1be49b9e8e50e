// SPDX-License-Identifier: Apache-2.0
// Waits of an interval, grouped the way the user wants to see them; those that go on are part of it.
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
    bool wait = false; // what is waited for is told apart
};

struct WaitKey : CallKey {
    uint8_t wait = WAIT_NONE;
    void set(const WaitSettings& settings, const call_key& call);
    auto operator<=>(const WaitKey&) const = default;
};

struct WaitGroup {
    WhoSeen who;
    std::set<std::pair<uint32_t, uint32_t>> threads; // pid, tid
    uint64_t calls = 0;                              // that returned
    uint64_t not_ready = 0;                          // of them
    uint64_t errors = 0;
    uint64_t waiting = 0;  // that have not returned yet
    uint64_t earlier = 0;  // of them: they began before tracing did, and their time is what has gone by since
    uint64_t ended = 0;    // that never will: their thread ended in them
    uint64_t ended_ns = 0; // how long these were, as a whole
    uint64_t total_ns = 0; // of the interval; a wait that spans several has a part in each
    uint64_t max_ns = 0;   // of whole waits, so far
    Histogram duration;    // of calls that returned

    void add(const CallDelta& delta);
};

// "stream", "poll"
std::string_view wait_name(uint8_t wait);

// The time of calls that have not returned when an interval ends: a part in each of their intervals, the last one too.
class Waiting {
public:
    struct Shared { // with the kernel side: its variables of these names
        __u64& reported_ns;
        bool& waits_go_on;
        __u32& places_taken;
    };
    // The kernel side's table of threads, and its queue of free places in it. Throws Error.
    Waiting(int table_fd, int free_fd, Shared shared) : free_fd_(free_fd), table_(table_fd, 1), shared_(shared) {}

    // An interval ends now, and what the table has is to be taken next. Returns how long it was; `first`, if it is the
    // first.
    uint64_t end_interval(uint64_t now_ns, uint64_t first);

    struct Part {
        call_key key;
        uint64_t elapsed_ns;   // of the wait, up to the end of the interval
        uint64_t new_ns;       // of it, in no interval before
        bool waiting;          // it has not returned by then
        bool ended = false;    // it never will: its thread has ended
        bool earlier = false;  // it began before tracing did: what has elapsed is what has been seen of it
        uint64_t since_ns = 0; // CLOCK_MONOTONIC
    };
    // Those of the interval that has ended. Waits shorter than least_ns are left out. A few milliseconds, as
    // ProgramBarrier; none where the kernel refuses that: the interval then lasts until the next report.
    std::vector<Part> drain(uint64_t least_ns);

    // When calls end that do not return: all threads of the process have exited.
    void exited(uint32_t pid, uint64_t now_ns) { exits_[pid] = now_ns; }
    // The process is another program: whatever its threads were in is over, be its first one's id taken again.
    void executed(uint32_t pid, uint64_t time_ns) { execs_[pid] = time_ns; }

    // Places of threads that have ended are given back, once all of their calls are told. To be called once a second:
    // no end is known later than that.
    void forget_ended();

    // That have waited since tracing began, by process.
    std::map<pid_t, std::set<uint32_t>> threads();

private:
    enum class State : uint8_t { waiting, returned, ended };
    // The part of a call that is in the interval.
    void add_part(std::vector<Part>& parts, const wait_call& call, uint64_t least_ns, State state) const;
    std::optional<uint64_t> end_of(const wait_call& call, uint64_t thread_start_ns) const;
    bool take_ended(volatile waiting& place, const wait_call& call);
    uint32_t places(); // that have been taken: those behind them are neither mapped nor touched, and need no memory

    int free_fd_;
    SharedArray<waiting> table_;
    Shared shared_;
    ProgramBarrier barrier_;
    uint64_t before_ns_ = 0; // when the interval began, and ended
    uint64_t now_ns_ = 0;
    std::map<uint32_t, uint64_t> exits_; // by pid, since forget_ended()
    std::map<uint32_t, uint64_t> execs_;
    std::vector<wait_call> ended_; // and are to be told
};

class WaitGroups : public CallGroups<WaitSettings, WaitKey, WaitGroup> {
public:
    WaitGroups(const WaitSettings& settings, Processes& processes) : CallGroups(settings, processes) {}

    void add(const CallDelta& delta) { thread_of(delta.key).add(delta); }
    void add(const Waiting::Part& part);

private:
    WaitGroup& thread_of(const call_key& call); // the group, which has this call's thread among its own
};

} // namespace gpusnoop
