// SPDX-License-Identifier: Apache-2.0
// cudasync: shows how long threads wait for the GPU, in which calls, and which threads poll for completion instead.
#include "base/loop.hpp"
#include "run/call_tool.hpp"
#include "tools/cudasync/all_waits.hpp"
#include "tools/cudasync/columns.hpp"
#include "tools/tools.hpp"

#include "bpf/shared/wait.h"
#include "cudasync.skel.h" // must follow the headers of its types

#include <optional>
#include <utility>

namespace gpusnoop::cudasync {
namespace {

constexpr ToolSpec about{
    .name = "cudasync",
    .summary = "Shows which threads wait for the GPU, in which calls and how long; also waits that have not ended.",
    .examples = "  cudasync                    # waits of all processes by kind of wait, until Ctrl-C\n"
                "  cudasync 1                  # a table every second, including waits in progress\n"
                "  cudasync --by thread 5      # which threads wait, and for what share of their time\n"
                "  cudasync --by pod 5         # which pod waits\n"
                "  cudasync -p 1234 -U         # call stacks that wait most\n"
                "  cudasync -H duration        # a histogram of how long waits are\n"
                "  cudasync -e -l 1000         # one line per wait of a millisecond or more\n"
                "  cudasync -x                 # only waits that return an error: failed kernels surface here\n"
                "  cudasync --json 1           # one JSON object per row and second\n",
    .open = BpfObject::open<cudasync_bpf>,
};

class CudaSync : public CallTool {
public:
    CudaSync();

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;

private:
    cudasync_bpf& skeleton() const { return bpf_.as<cudasync_bpf>(); }
    // True if the output includes unfinished waits. Lines, histograms and -x need durations or results, which such
    // waits do not have yet.
    bool shows_waiting() const { return !settings_.events && !settings_.histogram() && !options_.failed_only; }
    void tracing_began(const Running& running);
    void scan_earlier_waits();

    Settings settings_;
    std::optional<AllWaits> waits_;
};

CudaSync::CudaSync() : CallTool(about, settings_, {.thread = true})
{
    settings_.sort = "total_ns";
    line_fields_ = line_fields();
    add_call_options("wait, ", "pid,wait", "duration");
    add_least("waits", settings_.least_ns);
}

RunPlan CudaSync::plan()
{
    RunPlan plan = begin_plan();
    validate_options(settings_, options_);
    plan.hooks.begin.emplace_back([this](const Running& running) { tracing_began(running); });
    plan.hooks.on_exec = [this](pid_t pid, uint64_t time_ns) { waits_->executed(pid, time_ns); };
    plan.hooks.on_exit = [this](pid_t pid) { waits_->exited(pid); };
    plan.traced = traced("waits");
    plan.noun = traced("wait") + at_least(settings_.least_ns);
    plan.programs = {
        {"wait", counted(), wait_calls, true},
    };
    if (settings_.view.device) {
        plan.programs.push_back({"state", Layers::both, device_calls, true, "devices are unknown"});
        plan.programs.push_back({"life", Layers::driver, context_ends, true, stale_devices});
    }
    return finish_plan(std::move(plan));
}

void CudaSync::configure(const Filters& filters)
{
    CallTool::configure(filters);
    auto& data = *skeleton().rodata;
    data.per_thread = true; // WALL% is a share of the threads' time
    data.least_ns = settings_.least_ns;
    data.show_waiting = shows_waiting();
}

void CudaSync::load()
{
    CallTool::load();
    waits_.emplace(
        bpf_map__fd(skeleton().maps.waiting), bpf_map__fd(skeleton().maps.free_places),
        Waiting::Shared{skeleton().bss->reported_ns, skeleton().bss->has_long_wait, skeleton().bss->places_taken});
    if (shows_waiting())
        waits_->find_earlier(probes_, settings_, options_, found_stacks());
}

void CudaSync::tracing_began(const Running& running)
{
    scan_earlier_waits();
    for (const auto later : EarlierWaits::first_scan_delays)
        running.loop.after(later, [this] { scan_earlier_waits(); });
}

void CudaSync::scan_earlier_waits()
{
    if (shows_waiting() && running_)
        waits_->scan_earlier(running_->users());
}

bool CudaSync::tick(Output& output)
{
    waits_->forget_ended();
    scan_earlier_waits();
    return CallTool::tick(output);
}

void CudaSync::print(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (!shows_rows_)
        return;
    if (shows_waiting())
        interval_ns = waits_->end_interval(interval_ns);
    const double seconds = static_cast<double>(interval_ns) / 1e9;
    WaitGroups groups(settings_, processes());
    for (const CallDelta& delta : calls())
        groups.add(delta);
    if (shows_waiting())
        for (const Waiting::Part& part : waits_->of_interval(seconds, processes(), settings_.least_ns))
            groups.add(part);
    print_groups(output, groups, {call_context(settings_, interval_ns)}, wall_ns);
}

} // namespace
} // namespace gpusnoop::cudasync

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_cudasync()
{
    return std::make_unique<cudasync::CudaSync>();
}
