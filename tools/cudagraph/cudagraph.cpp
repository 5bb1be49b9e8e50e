// SPDX-License-Identifier: Apache-2.0
// cudagraph: shows contents and launches of CUDA graphs, and processes that rebuild graphs again and again.
#include "base/clock.hpp"
#include "run/call_tool.hpp"
#include "run/command_line.hpp"
#include "tools/cudagraph/columns.hpp"
#include "tools/tools.hpp"

#include "bpf/shared/record.h"
#include "cudagraph.skel.h" // must follow the headers of its types

#include <optional>
#include <utility>

namespace gpusnoop::cudagraph {
namespace {

bool is_memory_node(const probe_row& row) // cuGraphAddMemAllocNode and cuGraphAddMemFreeNode
{
    return (row.kind == KIND_ALLOC || row.kind == KIND_FREE) && row.holding == HOLDING_GRAPH;
}

// True for calls that become a node under capture. Allocations and copies do so only if they are stream-ordered.
bool can_be_captured(const probe_row& row)
{
    if (row.kind == KIND_ALLOC || row.kind == KIND_FREE)
        return row.holding == HOLDING_POOL;
    const bool copies = row.kind == KIND_COPY || row.kind == KIND_COPY_BATCH || row.kind == KIND_COPY_BATCH_3D;
    return !copies || row.asynchronous;
}

constexpr CallSet graph_launch_calls = calls_of({KIND_GRAPH_LAUNCH});
constexpr CallSet life_calls =
    calls_of({KIND_CAPTURE_BEGIN, KIND_CAPTURE_END, KIND_GRAPH_NEW, KIND_GRAPH_NODE, KIND_GRAPH_DESTROY,
              KIND_GRAPH_INSTANTIATE, KIND_GRAPH_UPLOAD, KIND_GRAPH_UPDATE, KIND_GRAPH_SET, KIND_EXEC_DESTROY});
constexpr CallSet trim_calls = calls_of({KIND_TRIM}, [](const probe_row& row) { return row.holding == HOLDING_GRAPH; });
constexpr CallSet memory_node_calls = calls_of({KIND_ALLOC, KIND_FREE}, is_memory_node);
constexpr CallSet node_calls =
    calls_of({KIND_LAUNCH, KIND_LAUNCH_LEGACY, KIND_LAUNCH_LIST, KIND_LAUNCH_ITEMS, KIND_HOST_FUNC, KIND_COPY,
              KIND_COPY_BATCH, KIND_COPY_BATCH_3D, KIND_ALLOC, KIND_FREE},
             can_be_captured);

constexpr ToolSpec about{
    .name = "cudagraph",
    .summary = "Shows CUDA graphs: their nodes, launches and latency, and processes that rebuild them.",
    .examples = "  cudagraph 1                 # launched graphs, every second\n"
                "  cudagraph --summary 5       # captures, instantiations, share of kernels from graphs, by process\n"
                "  cudagraph --by pod 5        # which pod launches graphs\n"
                "  cudagraph -e -p 1234        # calls about each graph, in order\n"
                "  cudagraph -H launch         # duration of launches on the host; also instantiate\n"
                "  cudagraph --storms          # re-capture storms: over 6 captures a minute, with call stacks\n"
                "  cudagraph -x                # only failed calls, with the error\n"
                "  cudagraph --json 1          # one JSON object per row and second\n",
    .open = BpfObject::open<cudagraph_bpf>,
};

class CudaGraph : public CallTool {
public:
    CudaGraph();

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void record(Output& output, const RingRecord& record) override;
    void delta(const CallDelta& delta) override;
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    void forget(const std::set<ImageId>& images) override;

private:
    cudagraph_bpf& skeleton() const { return bpf_.as<cudagraph_bpf>(); }

    Settings settings_;
    std::optional<Execs> execs_;
    std::optional<Storms> storms_;
    std::vector<CallDelta> waiting_; // calls on graphs that were still unknown at the last report; they count in the
                                     // next one
};

CudaGraph::CudaGraph() : CallTool(about, settings_)
{
    settings_.sort = "launches";
    line_fields_ = line_fields();
    add_call_options("graph, ", "pid,graph", "launch, instantiate or nodes");
    CommandLine& line = command_line();
    line.flag("--summary", "one row per process: captures, instantiations, share of kernels from graphs",
              settings_.summary);
    line.number_or_none("--storms", "N", "processes that capture or instantiate graphs more than N times a minute (6)",
                        settings_.storms, {1, 1 << 20}, "6");
    line.text("--warm-up", "SEC",
              "with --storms: ignore a process for SEC seconds (or 5m) after its first capture or instantiation (60)",
              [&warm_up_s = settings_.warm_up_s](const std::string& text) {
                  using namespace std::chrono_literals;
                  warm_up_s = std::chrono::duration<double>(time_argument("--warm-up", text, "s", 0ns, 240h)).count();
              });
}

RunPlan CudaGraph::plan()
{
    RunPlan plan = begin_plan();
    validate_options(settings_, options_);
    plan.traced = options_.failed_only ? "graph calls that fail" : "graphs";
    plan.noun = settings_.storms ? "storm of captures or instantiations" : traced("graph call");
    plan.lines |= settings_.storms.has_value();
    shows_rows_ = !settings_.events && !settings_.storms;
    plan.needs_returns = true;
    plan.programs = {
        {"graph", counted(), life_calls, true},
        {"graph", counted(), trim_calls, true},
        {"graph", Layers::driver, memory_node_calls, true},
        {"life", Layers::driver, stream_calls, true, stale_streams},
    };
    if (settings_.storms)
        return finish_plan(std::move(plan));
    // Captured nodes are always traced in the driver, even if only runtime calls are counted.
    plan.programs.push_back({"launch", counted(), graph_launch_calls, follows_calls()});
    plan.programs.push_back(
        {"often", counted(), often_launched_graphs, follows_calls(), slower_launches, true, false, "launch"});
    plan.programs.push_back({"node", Layers::driver, node_calls, true});
    plan.programs.push_back({"event", Layers::driver, event_calls});
    if (settings_.view.device) {
        plan.programs.push_back({"state", Layers::both, device_calls, true, "devices are unknown"});
        plan.programs.push_back({"life", Layers::driver, context_ends, true, stale_devices});
    }
    return finish_plan(std::move(plan));
}

void CudaGraph::configure(const Filters& filters)
{
    CallTool::configure(filters);
    auto& data = *skeleton().rodata;
    data.often_launched = row_number(probes_, often_launched_graphs);
    data.count_launches = settings_.summary;
    data.measure_nodes = settings_.histogram_of == Measure::nodes;
    if (data.measure_nodes)
        data.duration_unit_ns = 1;
}

void CudaGraph::load()
{
    CallTool::load();
    if (settings_.storms)
        storms_.emplace(*settings_.storms, static_cast<uint64_t>(settings_.warm_up_s.value_or(60) * 1e9));
    execs_.emplace(bpf_map__fd(skeleton().maps.execs), bpf_map__fd(skeleton().maps.graphs));
    if (shows_rows_)
        before_erase_ = [this] { execs_->refresh(); }; // keep the records of exited processes' graphs, because rows
                                                       // about them may still be due
}

void CudaGraph::delta(const CallDelta& delta)
{
    const call_key& key = delta.key;
    const bool capture = key.kind == KIND_CAPTURE_END, instantiate = key.kind == KIND_GRAPH_INSTANTIATE;
    if (storms_ && (capture || instantiate))
        storms_->add(key.image, {key.stack, key.caller}, capture ? delta[CALL_COUNT] : 0,
                     instantiate ? delta[CALL_COUNT] : 0, clock_ns(CLOCK_MONOTONIC));
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
        for (const Storm& storm : storms_->drain(clock_ns(CLOCK_MONOTONIC)))
            print_storm(output, storm, processes(), clock_ns(CLOCK_REALTIME),
                        frames(storm.image, storm.source.stack, storm.source.caller));
    return false;
}

void CudaGraph::record(Output& output, const RingRecord& record)
{
    if (const auto* ended = record.as<exec_record>(RECORD_EXEC_ENDED); ended && shows_rows_)
        execs_->ended(*ended); // skipped if there are no reports, because only print() removes ended graphs
    else
        CallTool::record(output, record);
}

void CudaGraph::print(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (!shows_rows_)
        return;
    const std::span<const CallDelta> rows = calls(); // call this first: it renumbers the stacks that groups refer to
    execs_->refresh();
    GraphGroups groups(settings_, processes(), &*execs_);
    for (const CallDelta& delta : waiting_)
        groups.add(delta);
    waiting_.clear();
    // Graphs and calls are not read at the same instant, so a new graph may be unknown until the next report.
    for (const CallDelta& delta : rows)
        if (settings_.exec && delta.key.subject && !execs_->find(delta.key.subject))
            waiting_.push_back(delta);
        else
            groups.add(delta);
    print_groups(output, groups, {call_context(settings_, interval_ns), clock_ns(CLOCK_MONOTONIC), *execs_}, wall_ns);
    execs_->forget_ended();
}

} // namespace
} // namespace gpusnoop::cudagraph

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_cudagraph()
{
    return std::make_unique<cudagraph::CudaGraph>();
}
