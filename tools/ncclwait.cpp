// SPDX-License-Identifier: Apache-2.0
// ncclwait: which rank keeps the others waiting.
#include "attach/load_together.hpp"
#include "bpf/shared/record.h"
#include "calls/collectives.hpp"
#include "columns/ncclwait_columns.hpp"
#include "maps/bpf_map.hpp"
#include "maps/skeleton.hpp"
#include "run/command_line.hpp"
#include "run/loop.hpp"
#include "run/tool.hpp"
#include "tools.hpp"

#include "ncclwait.skel.h" // after the types that it mentions

#include <bpf/libbpf.h>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace gpusnoop::ncclwait {
namespace {

constexpr ToolSpec about{
    .name = "ncclwait",
    .summary = "Shows which rank keeps the others waiting: NCCL's calls by communicator, and who comes last to them.",
    .examples = "  ncclwait                    # a row per communicator, until Ctrl-C\n"
                "  ncclwait 5                  # a table every 5 seconds\n"
                "  ncclwait --by rank 5         # how long each rank waits for the last one, how often it is that\n"
                "  ncclwait --by rank,op 5      # ... of each operation\n"
                "  ncclwait --by pod 5         # which pod's ranks wait\n"
                "  ncclwait -c train.slice 5   # ranks of one cgroup\n"
                "  ncclwait --json 1           # one JSON object per row and second\n",
    .without_returns = "it cannot be told what was enqueued",
};

constexpr unsigned ticks_at_start = 3;

class NcclWait : public Tool {
public:
    NcclWait() : Tool(about) {}

    void add_options(CommandLine& line) override;
    RunPlan plan(const Options& options) override;
    Opened open() override;
    void configure(std::span<const Probe> probes, const Filters& filters) override;
    void load_programs(bool together) override;
    void load() override;
    void begin(const Running& running) override;
    void record(Output& output, const void* data, size_t size) override;
    void on_exec(pid_t pid, uint64_t time_ns) override;
    void on_exit(pid_t pid) override { leaving_.insert(static_cast<uint32_t>(pid)); }
    std::set<pid_t> exits_missed() override { return processes_->ended(); }
    bool tick(Output& output) override;
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;

private:
    Options options_;
    Settings settings_;
    Skeleton<ncclwait_bpf> skeleton_;
    std::optional<Collectives> collectives_;
    std::optional<Processes> processes_;
    Loop* loop_ = nullptr; // of the run
    bool waits_traced_ = false;
    unsigned ticks_ = 0;
    std::set<uint32_t> leaving_; // pids whose first thread has ended
    std::set<ImageId> gone_;     // to be forgotten after the next report
};

void NcclWait::add_options(CommandLine& line)
{
    const std::pair<const char*, const char*> refused[] = {
        {"--failed", "-x is about single calls; errors have a column (--columns +ERRORS)"},
        {"--user-stacks", "-U is about single calls, which ncclwait does not show"},
        {"--per-process", "-P is for histograms (-H) of the other tools; here, --by pid makes rows of processes"},
        {"--per-thread", "-L is for histograms (-H) of the other tools; here, --by rank makes rows of ranks"},
        {"--milliseconds", "-m is for histograms (-H) of the other tools"},
        {"--nanoseconds", "-N is for histograms (-H) of the other tools"},
        {"--table-rows", "--table-rows is for counts of calls in the kernel, which ncclwait does not have"},
    };
    for (const auto& [option, why] : refused)
        line.refuse(option, why);
    line.text("--by", "WHAT[,WHAT]",
              fmt::format("rows by communicator, rank, op, {}, or several (communicator)", WhoView::names),
              settings_.by);
    line.text("-s,--sort", "COLUMN", fmt::format("column to sort by ({})", settings_.sort), settings_.sort);
}

RunPlan NcclWait::plan(const Options& options)
{
    check_fields(options, settings_.sort);
    options_ = options;
    settings_.view.who.owner = options.extra_columns;
    settings_.communicator = !settings_.by;
    if (settings_.by) {
        const Dimension own[] = {
            {"communicator", &settings_.communicator}, {"rank", &settings_.rank}, {"op", &settings_.op}};
        parse_by(*settings_.by, settings_.view, own, false);
    }
    settings_.communicator |= settings_.rank;
    RunPlan plan{.traced = "NCCL calls", .one = "NCCL call"};
    const std::string_view uncaptured = "calls captured into graphs count as executed";
    plan.programs = {
        {"coll", Layers::nccl, nccl_calls, true},
        {"state", Layers::driver, capture_calls, true, uncaptured},
        {"event", Layers::driver, event_calls, false, uncaptured},
        {"waited", Layers::driver, work_waits, true, "who is late in jobs that ran before tracing did", false},
    };
    plan.needs_returns = true;
    return plan;
}

Opened NcclWait::open()
{
    skeleton_ = open_skeleton<ncclwait_bpf>();
    return {.object = skeleton_->obj,
            .switches = {.attach_phase = &skeleton_->bss->attach_phase,
                         .traced_since = &skeleton_->bss->traced_since,
                         .naming = &waits_traced_}};
}

void NcclWait::configure(std::span<const Probe> probes, const Filters& filters)
{
    configure_shared(*skeleton_->rodata, options_, filters);
    configure_probes(*skeleton_->rodata, probes, filters);
    collectives_.emplace(probes, settings_.view.who.thread);
}

void NcclWait::load_programs(bool together)
{
    load_into_kernel([this] { return ncclwait_bpf::load(skeleton_.get()); }, together);
}

void NcclWait::load()
{
    processes_.emplace(bpf_map__fd(skeleton_->maps.processes), options_.host_root);
}

void NcclWait::begin(const Running& running)
{
    processes_->tracing_began(running.since_ns);
    loop_ = &running.loop;
}

void NcclWait::record(Output&, const void* data, size_t size)
{
    uint32_t type = 0;
    memcpy(&type, data, sizeof(type));
    if (type == RECORD_PROCESS && size >= sizeof(process_record))
        processes_->learn(*static_cast<const process_record*>(data));
    else if (type == RECORD_COMM && size >= sizeof(comm_record))
        collectives_->learn(*static_cast<const comm_record*>(data));
    else if (type == RECORD_COLLECTIVE && size >= sizeof(collective_call))
        collectives_->add(*static_cast<const collective_call*>(data));
    else if (type == RECORD_WAITED && size >= sizeof(waited_record))
        collectives_->waited(*static_cast<const waited_record*>(data));
}

void NcclWait::on_exec(pid_t pid, uint64_t time_ns)
{
    if (processes_->executed(static_cast<uint32_t>(pid), time_ns))
        leaving_.insert(static_cast<uint32_t>(pid));
}

bool NcclWait::tick(Output&)
{
    collectives_->join();
    const std::vector<ImageId> gone = processes_->gone_of(leaving_);
    for (const ImageId& image : gone)
        collectives_->forget(image);
    gone_.insert(gone.begin(), gone.end());
    if (!gone.empty())
        for (const bpf_map* map : {skeleton_->maps.comms, skeleton_->maps.captures, skeleton_->maps.capturing_streams,
                                   skeleton_->maps.captured_events})
            erase_images(bpf_map__fd(map), [&](const image& image) { return gone_.contains(image); });
    // Until it is known whether there are jobs from before; and while there are.
    return ticks_++ < ticks_at_start || collectives_->to_align();
}

void NcclWait::report(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    processes_->refresh();
    collectives_->join(loop_ && loop_->stopped());
    const Context context{options_, settings_, *processes_, static_cast<double>(interval_ns) / 1e9};
    print_groups(output, group_parts(collectives_->drain(), settings_, *processes_), context, wall_ns);
    processes_->forget(gone_);
    gone_.clear();
}

} // namespace
} // namespace gpusnoop::ncclwait

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_ncclwait()
{
    return std::make_unique<ncclwait::NcclWait>();
}
