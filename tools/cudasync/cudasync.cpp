// SPDX-License-Identifier: Apache-2.0
// cudasync: who waits for the device, in which call, for how long, and who asks again and again instead.
#include "base/clock.hpp"
#include "base/loop.hpp"
#include "rows/call_fields.hpp"
#include "run/call_tool.hpp"
#include "tools/cudasync/earlier_waits.hpp"
#include "tools/cudasync/options.hpp"
#include "tools/tools.hpp"

#include "bpf/shared/wait.h"
#include "cudasync.skel.h" // after the types that it mentions

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop::cudasync {
namespace {

constexpr ToolSpec about{
    .name = "cudasync",
    .summary = "Shows who waits for the GPU, in which calls and for how long; also waits that have not ended.",
    .examples = "  cudasync                    # waits of all processes by what is waited for, until Ctrl-C\n"
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
    CudaSync() : CallTool(about, settings_, {.thread = true}) {}

    void add_options(CommandLine& line) override;
    void configure(const Filters& filters) override;
    void load() override;
    void begin(const Running& running) override;
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    bool tick(Output& output) override;
    void on_exec(pid_t pid, uint64_t time_ns) override;
    void on_exit(pid_t pid) override;

private:
    cudasync_bpf& skeleton() const { return bpf_.as<cudasync_bpf>(); }
    // Those that still wait are no failures, and have no duration yet.
    bool shows_waiting() const { return !settings_.events && !settings_.histogram() && !options_.failed_only; }
    void look_at_earlier();
    void validate(RunPlan& plan) override;
    void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) override;
    void print_event(Output& output, const call_event& event) override
    {
        lines_->print(output, {event}, event_frames(event));
    }

    Settings settings_;
    std::optional<Running> running_;
    std::optional<Waiting> waiting_;
    std::optional<ThreadRegisters> registers_; // where earlier_ is
    std::optional<EarlierWaits> earlier_;      // where they are shown
    std::optional<CallEvents<CallLine, Context>> lines_;
};

void CudaSync::add_options(CommandLine& line)
{
    settings_.sort = "total_ns";
    add_call_options(line, "wait, ", "pid,wait", "duration");
    add_least(line, "waits", settings_.least_ns);
}

void CudaSync::validate(RunPlan& plan)
{
    validate_options(settings_, options_);
    plan.traced = traced("waits");
    plan.one = traced("wait") + at_least(settings_.least_ns);
    plan.programs = {
        {"wait", counted(), wait_calls, true},
    };
    if (!settings_.view.device)
        return;
    plan.programs.push_back({"state", Layers::both, device_calls, true, "devices are unknown"});
    plan.programs.push_back({"life", Layers::driver, context_ends, true, stale_devices});
}

void CudaSync::configure(const Filters& filters)
{
    CallTool::configure(filters);
    auto& data = *skeleton().rodata;
    data.per_thread = true; // a share of time is one of the threads'
    data.least_ns = settings_.least_ns;
    data.show_waiting = shows_waiting();
}

void CudaSync::load()
{
    CallTool::load();
    waiting_.emplace(
        bpf_map__fd(skeleton().maps.waiting), bpf_map__fd(skeleton().maps.free_places),
        Waiting::Shared{skeleton().bss->reported_ns, skeleton().bss->waits_go_on, skeleton().bss->places_taken});
    if (shows_waiting())
        earlier_.emplace(probes_, settings_.driver, settings_.runtime, options_, registers_.emplace(), found_stacks());
    lines_.emplace(line_fields(), Context{{options_, settings_, processes(), 0, probes_}});
}

void CudaSync::begin(const Running& running)
{
    CallTool::begin(running);
    running_.emplace(running);
    look_at_earlier();
    for (const auto later : EarlierWaits::first_looks)
        running.loop.after(later, [this] { look_at_earlier(); });
}

void CudaSync::look_at_earlier()
{
    if (earlier_ && running_)
        earlier_->look(running_->users(), *waiting_);
}

void CudaSync::report(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (shows_waiting())
        interval_ns = waiting_->end_interval(clock_ns(CLOCK_MONOTONIC), interval_ns);
    CallTool::report(output, wall_ns, interval_ns);
}

bool CudaSync::tick(Output& output)
{
    waiting_->forget_ended();
    look_at_earlier();
    return CallTool::tick(output);
}

void CudaSync::on_exec(pid_t pid, uint64_t time_ns)
{
    waiting_->executed(static_cast<uint32_t>(pid), time_ns);
    if (earlier_)
        earlier_->left(pid);
    CallTool::on_exec(pid, time_ns);
}

void CudaSync::on_exit(pid_t pid)
{
    waiting_->exited(static_cast<uint32_t>(pid), clock_ns(CLOCK_MONOTONIC));
    if (earlier_)
        earlier_->left(pid);
    CallTool::on_exit(pid);
}

void CudaSync::print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds)
{
    WaitGroups groups(settings_, processes());
    for (const CallDelta& delta : calls)
        groups.add(delta);
    if (shows_waiting())
        for (const Waiting::Part& part : waiting_->drain(settings_.least_ns))
            groups.add(part);
    if (earlier_)
        for (const Waiting::Part& part : earlier_->parts(clock_ns(CLOCK_MONOTONIC), seconds, processes()))
            groups.add(part);
    const Context context{{options_, settings_, processes(), seconds, probes_}};
    if (settings_.histogram())
        print_histograms(output, groups, context, wall_ns);
    else
        print_groups(output, groups, context, wall_ns,
                     [this](const WaitKey& key, const WaitGroup&) { return row_frames(key); });
}

} // namespace
} // namespace gpusnoop::cudasync

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_cudasync()
{
    return std::make_unique<cudasync::CudaSync>();
}
