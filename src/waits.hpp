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
#include <optional>
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
    uint64_t waiting = 0; // that have not returned yet
    int64_t total_ns = 0; // of the interval; a wait that spans several has a part in each
    uint64_t max_ns = 0;  // of whole waits, so far
    Histogram duration;   // of calls that returned

    void add(const CallDelta& delta);
};

// "stream", "poll"
std::string_view wait_name(uint8_t wait);

// Calls that have not returned. What an interval has shown of one is not shown again when it returns.
class Waiting {
public:
    // The kernel side's table of waiting threads, and its queue of free places in it.
    Waiting(int table_fd, int free_fd);

    struct Part {
        call_key key;
        uint64_t elapsed_ns; // of the whole wait; 0: it has ended
        int64_t new_ns;      // to be added to what was shown
    };
    // To be called after the rows of calls that returned have been taken. Waits shorter than least_ns are left out.
    std::vector<Part> take(uint64_t now_ns, uint64_t least_ns);

private:
    struct Shown {
        call_key key;
        uint64_t since_ns;
        uint64_t shown_ns;
    };

    // The thread's wait; nothing where it does not wait now.
    std::optional<waiting> read(uint32_t place) const;

    int table_fd_;
    int free_fd_;
    SharedArray<waiting> table_;
    std::map<uint32_t, Shown> shown_; // by place
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
