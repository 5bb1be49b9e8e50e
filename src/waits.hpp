// SPDX-License-Identifier: Apache-2.0
// Waits of an interval, grouped the way the user wants to see them; those that go on are part of it.
#pragma once

#include "../bpf/probe.h"
#include "../bpf/wait.h"
#include "call_view.hpp"
#include "calls.hpp"
#include "histogram.hpp"
#include "shared_array.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

struct WaitSettings : CallSettings {
    bool wait = false; // what is waited for is told apart
};

struct WaitKey : CallKey {
    uint8_t wait = WAIT_NONE;
    auto operator<=>(const WaitKey&) const = default;
};

struct WaitGroup {
    WhoSeen who;
    std::set<std::pair<uint32_t, uint32_t>> threads; // pid, tid
    uint64_t calls = 0;                              // that returned
    uint64_t not_ready = 0;                          // of them
    uint64_t errors = 0;
    uint64_t waiting = 0;  // that have not returned yet
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
    // The kernel side's table of threads, its queue of free places in it, and its reported_ns.
    Waiting(int table_fd, int free_fd, __u64& reported_ns)
        : free_fd_(free_fd), table_(table_fd, WAITING_MAX), reported_ns_(reported_ns)
    {}

    // An interval ends now, and what the table has is to be taken next. Returns how long it was; `first`, if it is the
    // first.
    uint64_t end_interval(uint64_t now_ns, uint64_t first);

    struct Part {
        call_key key;
        uint64_t elapsed_ns; // of the wait, up to the end of the interval
        uint64_t new_ns;     // of it, in no interval before
        bool waiting;        // it has not returned by then
    };
    // Those of the interval that has ended. Waits shorter than least_ns are left out.
    std::vector<Part> take(uint64_t least_ns);

    // Places of threads that have ended are given back, once all of their calls are told.
    void forget_ended();

private:
    // The part of a call that is in the interval; `over`: it has returned by its end.
    void add_part(std::vector<Part>& parts, const wait_call& call, uint64_t least_ns, bool over) const;

    int free_fd_;
    SharedArray<waiting> table_;
    __u64& reported_ns_;
    uint64_t before_ns_ = 0; // when the interval began, and ended
    uint64_t now_ns_ = 0;
};

class WaitGroups {
public:
    WaitGroups(const WaitSettings& settings, Processes& processes) : settings_(settings), processes_(processes) {}

    void add(const CallDelta& delta) { group_of(delta.key).add(delta); }
    void add(const Waiting::Part& part);
    const std::map<WaitKey, WaitGroup>& groups() const { return groups_; }

private:
    WaitGroup& group_of(const call_key& key);

    const WaitSettings& settings_;
    Processes& processes_;
    std::map<WaitKey, WaitGroup> groups_;
};

} // namespace gpusnoop
