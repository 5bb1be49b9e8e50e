// SPDX-License-Identifier: Apache-2.0
// cudagraph: what hides behind the launch of a graph, and who makes graphs again and again.
#include "call_fields.hpp"
#include "call_tool.hpp"
#include "clock.hpp"
#include "cudagraph_options.hpp"
#include "skeleton.hpp"

#include "../bpf/attach.h"
#include "../bpf/record.h"
#include "cudagraph.skel.h" // after the types that it mentions

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop::cudagraph {
namespace {

constexpr probe_kind graph_launch_kinds[] = {KIND_GRAPH_LAUNCH};
constexpr probe_kind life_kinds[] = {KIND_CAPTURE_BEGIN, KIND_CAPTURE_END,       KIND_GRAPH_NEW,    KIND_GRAPH_NODE,
                                     KIND_GRAPH_GONE,    KIND_GRAPH_INSTANTIATE, KIND_GRAPH_UPLOAD, KIND_GRAPH_UPDATE,
                                     KIND_GRAPH_SET,     KIND_EXEC_GONE,         KIND_TRIM};
// What becomes a node under capture: of the driver, whatever layer is counted.
constexpr probe_kind node_kinds[] = {KIND_LAUNCH,     KIND_LAUNCH_LIST,   KIND_LAUNCH_LEGACY, KIND_HOST_FUNC, KIND_COPY,
                                     KIND_COPY_BATCH, KIND_COPY_BATCH_3D, KIND_ALLOC,         KIND_FREE};

bool is_node_call(const probe_row& row)
{
    return row.holding == HOLDING_GRAPH && row.kind != KIND_TRIM; // cuGraphAddMemAllocNode and its free
}

class CudaGraph : public CallTool {
public:
    CudaGraph() : CallTool(settings_) {}

    std::string_view name() const override { return "cudagraph"; }
    std::string_view summary() const override
    {
        return "Shows CUDA graphs: what each consists of, how often and how fast it is launched, updates, and who "
               "captures or instantiates again and again.";
    }
    std::string_view examples() const override
    {
        return "  cudagraph 1                 # graphs that are launched, each second\n"
               "  cudagraph --summary 5       # captures, instantiations and share of kernels, by process\n"
               "  cudagraph --by pod 5        # which pod launches graphs\n"
               "  cudagraph -e -p 1234        # the life of each graph, in order\n"
               "  cudagraph -H launch         # how long launches take on the host; also instantiate\n"
               "  cudagraph --storms          # who captures or instantiates more than 6 times a minute, and from "
               "where\n"
               "  cudagraph -x                # only calls that fail\n"
               "  cudagraph --json 1          # one JSON object per row and second\n";
    }

    void add_options(CLI::App& app) override;
    std::string traced() const override { return options_.failed_only ? "graph calls that fail" : "graphs"; }
    bool needs_returns() const override { return true; }
    bool tick(Output& output) override;
    std::vector<Hook> hooks(std::span<const Probe> probes) const override;
    bpf_object* open() override;
    void configure(const Options& options, std::span<const Probe> probes, const Filters& filters) override;
    void load() override;
    void attached_again() override { skeleton_->bss->attach_generation = COOKIE_SECOND; }

private:
    void settle() override { settle_options(settings_, options_); }
    std::vector<Probe> choose_probes() const override;
    int load_skeleton() override { return cudagraph_bpf::load(skeleton_.get()); }
    bpf_object* object() override { return skeleton_->obj; }
    std::vector<const char*> tables_of(std::span<const ImageId> gone) override;
    bool learn(uint32_t type, const void* data, size_t size) override;
    void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) override;
    void print_event(Output& output, const call_event& event) override;
    bool shows_rows() const override { return !settings_.events && !settings_.storms; }
    void look_at(const CallDelta& delta) override;
    void forget(const std::set<ImageId>& images) override;

    Settings settings_;
    Skeleton<cudagraph_bpf> skeleton_;
    std::optional<Execs> execs_;
    std::optional<Storms> storms_;
    std::optional<CallEvents> lines_;
    std::vector<CallDelta> waiting_; // of graphs that came and went while tables were read
};

void CudaGraph::add_options(CLI::App& app)
{
    settings_.sort = "launches";
    settings_.latency = true;
    add_call_options(app, "graph, ", "pid,graph", "launch, instantiate or nodes");
    add_own_options(app, settings_);
}

std::vector<Probe> CudaGraph::choose_probes() const
{
    std::vector<Probe> all;
    for (Library library : layers()) {
        append_probes(all, library, graph_launch_kinds);
        append_probes(all, library, life_kinds);
    }
    append_probes(all, Library::driver, node_kinds);
    // Memory is a node where it is by stream, or a graph's own; and graphs' memory can be trimmed.
    std::erase_if(all, [](const Probe& probe) {
        const bool memory = probe.row.kind == KIND_ALLOC || probe.row.kind == KIND_FREE;
        const bool copies =
            probe.row.kind == KIND_COPY || probe.row.kind == KIND_COPY_BATCH || probe.row.kind == KIND_COPY_BATCH_3D;
        return (memory && probe.row.holding != HOLDING_POOL && !is_node_call(probe.row)) ||
               (probe.row.kind == KIND_TRIM && probe.row.holding != HOLDING_GRAPH) ||
               (copies && !probe.row.asynchronous);
    });
    append_probes(all, Library::driver, event_kinds);
    if (settings_.view.device)
        for (Library library : {Library::driver, Library::runtime})
            append_probes(all, library, device_kinds);
    return all;
}

std::vector<Hook> CudaGraph::hooks(std::span<const Probe> probes) const
{
    Hook graph{"graph", true, probes_of(probes, life_kinds), true};
    Hook node{"node", true, {}, true};
    for (unsigned i : probes_of(probes, node_kinds))
        (is_node_call(probes[i].row) ? graph : node).probes.push_back(i);
    if (settings_.storms)
        return {graph};
    return {{"launch", settings_.latency || options_.failed_only, probes_of(probes, graph_launch_kinds), true},
            graph,
            node,
            {"event", false, probes_of(probes, event_kinds), true},
            {"state", true, probes_of(probes, device_kinds), true}};
}

bpf_object* CudaGraph::open()
{
    skeleton_ = open_skeleton<cudagraph_bpf>();
    return skeleton_->obj;
}

void CudaGraph::configure(const Options& options, std::span<const Probe> probes, const Filters& filters)
{
    auto& data = *skeleton_->rodata;
    configure_shared(data, options, filters);
    configure_probes(data, probes, filters);
    configure_calls(data, settings_, options_);
    data.count_launches = settings_.summary;
    data.measure_nodes = settings_.histogram_of == Measure::nodes;
    if (data.measure_nodes)
        data.duration_unit_ns = 1;
    size_tables(skeleton_->obj);
}

void CudaGraph::load()
{
    CallTool::load();
    if (settings_.storms)
        storms_.emplace(*settings_.storms, static_cast<uint64_t>(settings_.warm_up_s.value_or(60) * 1e9));
    execs_.emplace(bpf_map__fd(skeleton_->maps.execs), bpf_map__fd(skeleton_->maps.graphs));
    lines_.emplace(options_, settings_, processes(), probes(),
                   std::initializer_list<Column>{
                       {"CALL", "call", Unit::text, 12},
                       {"GRAPH", "graph", Unit::hex, 14},
                       {"EXEC", "exec", Unit::hex, 14},
                       {"KERNELS", "kernels", Unit::count, 7},
                       {"COPIES", "copies", Unit::count, 6},
                       {"OTHERS", "other_nodes", Unit::count, 6},
                       {"", "update_reason", Unit::text, 0, false},
                   },
                   std::initializer_list<Column>{{"FUNCTION", "", Unit::text, 8, true, false}});
}

void CudaGraph::look_at(const CallDelta& delta)
{
    const call_key& key = delta.key;
    const bool capture = key.kind == KIND_CAPTURE_END, instantiate = key.kind == KIND_GRAPH_INSTANTIATE;
    if (storms_ && (capture || instantiate))
        storms_->add(key.image, {key.stack, key.caller}, capture ? delta.count : 0, instantiate ? delta.count : 0,
                     clock_ns(CLOCK_MONOTONIC));
}

void CudaGraph::forget(const std::set<ImageId>& images)
{
    execs_->forget(images);
    if (storms_)
        storms_->forget(images);
}

bool CudaGraph::tick(Output& output)
{
    CallTool::tick(output);
    if (storms_)
        for (const Storm& storm : storms_->take(clock_ns(CLOCK_MONOTONIC)))
            print_storm(output, storm, processes(), clock_ns(CLOCK_REALTIME),
                        frames(storm.image, storm.source.stack, storm.source.caller));
    return false;
}

std::vector<const char*> CudaGraph::tables_of(std::span<const ImageId> gone)
{
    std::vector<const char*> tables = CallTool::tables_of(gone);
    tables.insert(tables.end(), {"graphs", "execs"});
    execs_->refresh(); // what they have launched is still to be shown
    return tables;
}

bool CudaGraph::learn(uint32_t type, const void* data, size_t size)
{
    if (type != RECORD_EXEC_ENDED || size < sizeof(exec_record))
        return false;
    execs_->ended(*static_cast<const exec_record*>(data));
    return true;
}

void CudaGraph::print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds)
{
    execs_->refresh();
    GraphGroups groups(settings_, processes(), *execs_);
    for (const CallDelta& delta : waiting_)
        groups.add(delta);
    waiting_.clear();
    // What made it and what tells of its end are not read at the same instant: the next report knows it.
    for (const CallDelta& delta : calls)
        if (settings_.exec && delta.key.subject && !execs_->find(delta.key.subject))
            waiting_.push_back(delta);
        else
            groups.add(delta);
    const Context context{{options_, settings_, processes(), seconds, probes()}, clock_ns(CLOCK_MONOTONIC), *execs_};
    if (settings_.histogram())
        print_histograms(output, groups, context, wall_ns);
    else
        print_groups(output, groups, context, wall_ns,
                     [this](const GraphKey& key, const GraphGroup& group) { return row_frames(key, group.who); });
    execs_->forget_ended();
}

void CudaGraph::print_event(Output& output, const call_event& event)
{
    const call_key& key = event.key;
    const graph_call& call = event.graph;
    auto handle = [](uint64_t value) { return value ? Cell(value) : Cell(); };
    auto nodes = [&](uint32_t n) { return call.unknown ? Cell() : Cell(uint64_t{n}); };
    const bool refused = key.kind == KIND_GRAPH_UPDATE && key.result;
    lines_->print(output, event,
                  {std::string(graph_call_name(key.kind)), handle(call.graph), handle(call.exec), nodes(call.kernels),
                   nodes(call.copies), nodes(call.others),
                   refused ? Cell(std::string(update_reason(key.graph.reason))) : Cell()},
                  {function_name(probes(), key.function)}, event_frames(event));
}

} // namespace
} // namespace gpusnoop::cudagraph

int main(int argc, char** argv)
{
    gpusnoop::cudagraph::CudaGraph tool;
    return gpusnoop::run_tool(argc, argv, tool);
}
