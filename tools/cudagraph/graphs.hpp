// SPDX-License-Identifier: Apache-2.0
// Groups of the graph calls in an interval, and detection of re-capture storms.
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
    bool exec = false; // group by executable graph
    bool summary = false;
    bool time_instantiations = false; // durations are those of instantiations, not of launches
};

// An executable graph. It is kept after its destruction until its calls have been reported.
struct ExecInfo {
    ImageId image;
    graph_exec exec;
};

// All executable graphs, by their number, which is unique in this run.
class Execs {
public:
    Execs(int execs_fd, int graphs_fd) : execs_map_(execs_fd), graphs_map_(graphs_fd) {}

    void refresh();                        // reads the kernel side's maps
    void ended(const exec_record& record); // call this for a destroyed graph; it is kept for at least two reports
    void forget_ended();
    void forget(const std::set<ImageId>& images);

    const ExecInfo* find(uint64_t number) const;
    uint64_t live_execs(const std::set<ImageId>& images) const { return count(execs_of_, images); }
    uint64_t live_graphs(const std::set<ImageId>& images) const { return count(graphs_of_, images); }

private:
    struct Key { // same layout as the kernel side's handle_number
        image of;
        uint64_t handle;
    };

    static uint64_t count(const std::map<ImageId, uint64_t>& counts, const std::set<ImageId>& images);

    HashTable<Key, graph_exec> execs_map_;
    HashTable<Key, graph> graphs_map_;
    std::map<uint64_t, ExecInfo> known_;
    std::deque<uint64_t> ended_;
    size_t shown_ = 0; // number of elements, at the front of ended_, that have been in a report
    std::map<ImageId, uint64_t> execs_of_;
    std::map<ImageId, uint64_t> graphs_of_;
};

struct GraphKey : CallKey {
    uint64_t exec = 0; // number of the executable graph
    void set(const GraphSettings& settings, const call_key& call);
    auto operator<=>(const GraphKey&) const = default;
};

struct GraphGroup {
    WhoSeen who;
    const ExecInfo* exec = nullptr; // set if rows are grouped by executable graph
    uint64_t launches = 0;          // successful launches; all launches if results are not read
    uint64_t captured = 0;          // launches that became nodes of another graph
    uint64_t kernels = 0;           // kernels started by the launches in `launches`
    uint64_t unknown = 0;           // launches of graphs with unknown nodes; `kernels` does not include their kernels
    uint64_t direct = 0;            // kernels launched without a graph
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
    Histogram duration; // durations of launches, or of instantiations if GraphSettings::time_instantiations is set
    uint64_t errors = 0;
    uint64_t captures = 0;
    uint64_t failed_captures = 0;
    uint64_t capture_ns = 0;
    uint64_t instantiates = 0;
    uint64_t instantiate_ns = 0;
    uint64_t updates = 0;
    uint64_t failed_updates = 0;
    std::optional<uint8_t> reason; // why the last failed update was refused
    uint64_t last_refused = 0;     // CALL_LAST of that update
    uint64_t uploads = 0;
    uint64_t sets = 0;
    uint64_t destroyed = 0;

    void add(const CallDelta& delta, bool of_instantiations);
};

std::string_view graph_call_name(uint8_t kind); // "launch", "instantiate", ...
std::string_view update_reason(uint8_t reason); // "topology", "node type", ...
uint64_t node_count(const graph_nodes& nodes);

class GraphGroups : public CallGroups<GraphSettings, GraphKey, GraphGroup> {
public:
    // execs: needed if rows are grouped by executable graph; must outlive this object.
    GraphGroups(const GraphSettings& settings, Processes& processes, const Execs* execs = nullptr)
        : CallGroups(settings, processes), execs_(execs)
    {}

    void add(const CallDelta& delta);

private:
    const Execs* execs_;
};

// Re-capture storms: processes that capture or instantiate graphs again and again. Normally, a process does so only a
// few times, when it starts.

// Call stack from which a process captures or instantiates graphs.
struct StormSource {
    int32_t stack = -1;
    uint64_t caller = 0;
    auto operator<=>(const StormSource&) const = default;
};

struct Storm {
    ImageId image;
    uint64_t captures = 0; // captures in the last minute
    uint64_t instantiates = 0;
    StormSource source; // the source with the most captures and instantiations
};

class Storms {
public:
    static constexpr uint64_t minute_ns = 60'000'000'000;

    // limit: a process is in a storm if it makes more than this number of captures, or of instantiations, in a minute.
    // warm_up_ns: duration of the warm-up, in which calls are ignored. It begins with the process's first capture or
    // instantiation.
    Storms(uint64_t limit, uint64_t warm_up_ns) : limit_(limit), warm_up_ns_(warm_up_ns) {}

    // now_ns: CLOCK_MONOTONIC.
    void add(const ImageId& image, const StormSource& source, uint64_t captures, uint64_t instantiates,
             uint64_t now_ns);

    // Returns the processes that are in a storm at now_ns. Each process is returned at most once a minute.
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
        uint64_t reported_ns = 0; // time of the last report; 0: never
        std::deque<Made> made;    // captures and instantiations of the last minute, without the warm-up
    };

    uint64_t limit_;
    uint64_t warm_up_ns_;
    std::map<ImageId, Process> processes_;
};

} // namespace gpusnoop
