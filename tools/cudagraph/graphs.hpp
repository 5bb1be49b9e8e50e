// SPDX-License-Identifier: Apache-2.0
// Calls of the life of graphs in an interval, grouped the way the user wants to see them.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/graph.h"
#include "names/kernel_names.hpp"
#include "rows/call_sums.hpp"
#include "rows/calls.hpp"
#include "rows/histogram.hpp"

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct GraphSettings : CallSettings {
    bool exec = false; // told apart
    bool summary = false;
    bool time_instantiations = false; // in place of launches
};

// What executes a graph, as long as its calls are still to be shown.
struct ExecInfo {
    ImageId image;
    graph_exec exec;
};

// All that there are, by number.
class Execs {
public:
    Execs(int execs_fd, int graphs_fd) : execs_map_(execs_fd), graphs_map_(graphs_fd) {}

    void refresh();                        // reads the kernel side's tables
    void ended(const exec_record& record); // it is destroyed; forgotten two reports later, or more
    void forget_ended();
    void forget(const std::set<ImageId>& images);

    const ExecInfo* find(uint64_t number) const;
    uint64_t live_execs(const std::set<ImageId>& images) const { return count(execs_of_, images); }
    uint64_t live_graphs(const std::set<ImageId>& images) const { return count(graphs_of_, images); }

private:
    struct Key { // as the kernel side's handle_number
        image of;
        uint64_t handle;
    };

    static uint64_t count(const std::map<ImageId, uint64_t>& counts, const std::set<ImageId>& images);

    HashTable<Key, graph_exec> execs_map_;
    HashTable<Key, graph> graphs_map_;
    std::map<uint64_t, ExecInfo> known_;
    std::deque<uint64_t> ended_;
    size_t shown_ = 0; // of them, the first: a report was made since they ended
    std::map<ImageId, uint64_t> execs_of_;
    std::map<ImageId, uint64_t> graphs_of_;
};

struct GraphKey : CallKey {
    uint64_t exec = 0; // its number
    void set(const GraphSettings& settings, const call_key& call);
    auto operator<=>(const GraphKey&) const = default;
};

struct GraphGroup {
    WhoSeen who;
    const ExecInfo* exec = nullptr; // of rows of one
    uint64_t launches = 0;          // that succeeded, or were made where results are not known
    uint64_t captured = 0;          // launches that became nodes of another graph
    uint64_t kernels = 0;           // that launches started
    uint64_t unknown = 0;           // launches of graphs with unknown nodes: kernels lack theirs
    uint64_t direct = 0;            // kernels launched without a graph
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    Histogram duration; // of launches, or of instantiations
    uint64_t errors = 0;
    uint64_t captures = 0;
    uint64_t failed_captures = 0;
    uint64_t capture_ns = 0;
    uint64_t instantiates = 0;
    uint64_t instantiate_ns = 0;
    uint64_t updates = 0;
    uint64_t failed_updates = 0;
    std::optional<uint8_t> reason; // of the last update that failed
    uint64_t uploads = 0;
    uint64_t sets = 0;
    uint64_t destroyed = 0;

    void add(const CallDelta& delta, bool of_instantiations);
};

std::string_view graph_call_name(uint8_t kind); // "launch", "instantiate", ...
std::string_view update_reason(uint8_t reason); // "topology changed", ...
uint64_t node_count(const graph_nodes& nodes);

class GraphGroups : public CallGroups<GraphSettings, GraphKey, GraphGroup> {
public:
    // execs: needed where they are told apart; must outlive the object then.
    GraphGroups(const GraphSettings& settings, Processes& processes, const Execs* execs = nullptr)
        : CallGroups(settings, processes), execs_(execs)
    {}

    void add(const CallDelta& delta);

private:
    const Execs* execs_;
};

// Who captures or instantiates graphs again and again: what should happen a few times at the start, and then no more.

// Where a process makes its graphs from.
struct StormSource {
    int32_t stack = -1;
    uint64_t caller = 0;
    auto operator<=>(const StormSource&) const = default;
};

struct Storm {
    ImageId image;
    uint64_t captures = 0; // of the last minute
    uint64_t instantiates = 0;
    StormSource source; // of most of them
};

class Storms {
public:
    static constexpr uint64_t minute_ns = 60'000'000'000;

    // limit: captures, or instantiations, in a minute that are no storm yet. warm_up_ns: from a process' first one on.
    Storms(uint64_t limit, uint64_t warm_up_ns) : limit_(limit), warm_up_ns_(warm_up_ns) {}

    // Times are CLOCK_MONOTONIC, and do not go back.
    void add(const ImageId& image, const StormSource& source, uint64_t captures, uint64_t instantiates,
             uint64_t now_ns);

    // Those that go on now, each told again only after a minute.
    std::vector<Storm> drain(uint64_t now_ns);

    void forget(const std::set<ImageId>& images);

private:
    struct Made {
        uint64_t time_ns;
        StormSource source;
        uint64_t captures;
        uint64_t instantiates;
    };

    struct Process {
        uint64_t first_ns = 0;
        uint64_t reported_ns = 0; // 0: never
        std::deque<Made> made;    // in the last minute, and not in the warm-up
    };

    uint64_t limit_;
    uint64_t warm_up_ns_;
    std::map<ImageId, Process> processes_;
};

} // namespace gpusnoop
