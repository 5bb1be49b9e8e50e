// SPDX-License-Identifier: Apache-2.0
// Groups of the calls into GPU drivers in an interval, including calls that have not returned.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/ioctl.h"
#include "rows/call_sums.hpp"
#include "rows/calls.hpp"
#include "rows/histogram.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

struct DriverSettings : CallSettings {
    DriverSettings() { of_functions = false; }

    // Dimensions to group rows by.
    bool command = false;
    bool node = false;
    bool object_class = false;
    uint64_t least_ns = 0; // shorter calls are omitted
    bool no_monitor = false;
    bool xid = false;
};

struct DriverKey : CallKey {
    static constexpr bool has_place = false;

    uint8_t kind = 0;
    uint8_t flags = 0;
    uint64_t subject = 0; // low half: ioctl request; high half: the control command, object class or heap function that
                          // the request's struct names
    uint8_t node = 0;
    uint16_t minor = 0;
    std::optional<uint32_t> object_class;
    uint8_t outcome = 0;
    void set(const DriverSettings& settings, const call_key& call);
    auto operator<=>(const DriverKey&) const = default;
};

struct DriverGroup {
    WhoSeen who;
    uint64_t calls = 0; // calls that returned
    uint64_t errors = 0;
    uint64_t unknown = 0; // calls whose result is not known
    uint64_t bytes = 0;
    uint64_t virtual_bytes = 0; // bytes of address space, not included in `bytes`
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    uint64_t pending = 0;
    uint64_t pending_ns = 0; // time since the longest pending call began
    Histogram duration;

    void add(const CallDelta& delta);
};

class DriverGroups : public CallGroups<DriverSettings, DriverKey, DriverGroup> {
public:
    DriverGroups(const DriverSettings& settings, Processes& processes) : CallGroups(settings, processes) {}

    void add(const CallDelta& delta) { group_of(delta.key).add(delta); }
    void add(const driver_call& pending, uint64_t now_ns);
};

// Calls that have not returned.
class PendingCalls {
public:
    explicit PendingCalls(int map_fd) : map_(map_fd) {}

    // Returns pending calls, and removes entries of threads that were killed in a call.
    std::vector<driver_call> read();
    // Returns how many calls since the last drain were not counted because their return was missed. A kretprobe
    // supports only a limited number of calls in flight.
    uint64_t drain_missed() { return std::exchange(missed_, 0); }

private:
    void drop(uint32_t tid, const driver_call& call, bool alive);

    uint64_t missed_ = 0;
    HashTable<uint32_t, driver_call> map_;
};

} // namespace gpusnoop
