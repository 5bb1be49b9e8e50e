// SPDX-License-Identifier: Apache-2.0
// Calls into GPU drivers of an interval, grouped the way the user wants to see them; those that have not returned are
// part of it.
#pragma once

#include "../bpf/ioctl.h"
#include "bpf_map.hpp"
#include "call_view.hpp"
#include "calls.hpp"
#include "histogram.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

struct DriverSettings : CallSettings {
    bool command = false; // told apart
    bool node = false;
    bool object_class = false;
    uint64_t least_ns = 0; // shorter calls are left out
    bool no_monitor = false;
    bool xid = false;
};

// Which call it was: "RM_CONTROL FB_GET_INFO_V2", "open". Numbers that nobody knows are shown as such, in hex.
std::string command_text(uint8_t kind, uint8_t node, uint64_t subject, uint8_t flags);
inline std::string command_text(const call_key& key)
{
    return command_text(key.kind, key.driver.node, key.subject, key.flags);
}

// The class of the object that a control is sent to, or an allocation makes; none of other calls.
std::optional<uint32_t> object_class(const call_key& key);
std::string class_text(std::optional<uint32_t> number);

// "ok", "NO_MEMORY", "EINVAL"; "?" where the driver's answer could not be read.
std::string outcome_text(uint8_t outcome, int32_t result);

struct DriverKey : CallKey {
    uint8_t kind = 0;
    uint8_t flags = 0;
    uint64_t subject = 0; // request, and what it is about
    uint8_t node = 0;
    uint16_t minor = 0;
    std::optional<uint32_t> object_class;
    uint8_t outcome = 0;
    auto operator<=>(const DriverKey&) const = default;
};

struct DriverGroup {
    WhoSeen who;
    uint64_t calls = 0; // that returned
    uint64_t errors = 0;
    uint64_t unknown = 0; // of calls whose result cannot be known
    uint64_t bytes = 0;
    uint64_t virtual_bytes = 0; // of address space
    uint64_t total_ns = 0;
    uint64_t max_ns = 0; // of all time
    uint64_t pending = 0;
    uint64_t pending_ns = 0; // the longest, so far
    Histogram duration;
};

class DriverGroups {
public:
    DriverGroups(const DriverSettings& settings, Processes& processes) : settings_(settings), processes_(processes) {}

    void add(const CallDelta& delta);
    void add(const driver_call& pending, uint64_t now_ns);
    const std::map<DriverKey, DriverGroup>& groups() const { return groups_; }

private:
    DriverGroup& group_of(const call_key& key);

    const DriverSettings& settings_;
    Processes& processes_;
    std::map<DriverKey, DriverGroup> groups_;
};

// Calls that have not returned.
class PendingCalls {
public:
    explicit PendingCalls(int map_fd) : map_(map_fd) {}

    // Those of living threads; what threads have left that were killed in a call is taken out.
    std::vector<driver_call> take();
    // Calls whose return was not seen, since the last time this was asked: a kretprobe has room for so many at once.
    uint64_t take_missed() { return std::exchange(missed_, 0); }

private:
    uint64_t missed_ = 0;
    HashTable<uint32_t, driver_call> map_;
};

} // namespace gpusnoop
