// SPDX-License-Identifier: Apache-2.0
// Launches of an interval, grouped the way the user wants to see them.
#pragma once

#include "../bpf/probe.h"
#include "histogram.hpp"
#include "launches.hpp"
#include "who.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

// What is told apart.
struct View {
    WhoView who;
    bool kernel = false;
    bool stream = false;
    bool device = false;
    bool layer = false;
    bool result = false;
    bool stack = false;

    // "kernel,pid"; throws UsageError.
    void parse(std::string_view list);
};

// What a group stands for; what the view does not tell apart is empty.
struct GroupKey {
    WhoKey who;
    uint64_t stream = 0;
    uint8_t device = DEVICE_UNKNOWN;
    uint8_t layer = 0;
    uint8_t kind = KIND_LAUNCH;
    int32_t result = 0;
    std::string kernel; // name; empty while only the handle is known
    uint64_t handle = 0;
    int32_t stack = -1;
    uint64_t caller = 0;
    auto operator<=>(const GroupKey&) const = default;
};

struct Group {
    WhoSeen who;
    uint64_t kernels = 0; // executed; captured ones are apart
    uint64_t graphs = 0;
    uint64_t host_functions = 0;
    uint64_t captured = 0;
    uint64_t errors = 0;
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    uint64_t last = 0;
    bool shaped = false;
    launch_shape shape{}; // the last one
    Histogram blocks;
    Histogram threads;
    Histogram duration;

    uint64_t calls() const { return kernels + graphs + host_functions; }
    void add(const LaunchDelta& delta);
};

// "vecadd(float*)", "[graph 0x...]", "[host function f]"; the handle where there is no name.
std::string launch_name(const GroupKey& key);

class LaunchGroups {
public:
    LaunchGroups(View view, KernelNames& names, Processes& processes)
        : view_(view), names_(names), processes_(processes)
    {}

    GroupKey key_of(const launch_key& key);
    void add(const LaunchDelta& delta);
    const std::map<GroupKey, Group>& groups() const { return groups_; }

private:
    View view_;
    KernelNames& names_;
    Processes& processes_;
    std::map<GroupKey, Group> groups_;
};

} // namespace gpusnoop
