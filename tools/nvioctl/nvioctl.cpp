// SPDX-License-Identifier: Apache-2.0
// nvioctl: shows calls into GPU drivers by name, with status and latency, and the last calls before an Xid.
#include "attach/refusal.hpp"
#include "base/clock.hpp"
#include "gpu/command_layouts.hpp"
#include "gpu/driver_hooks.hpp"
#include "gpu/driver_names.hpp"
#include "gpu/gpu_files.hpp"
#include "run/call_tool.hpp"
#include "run/command_line.hpp"
#include "tools/nvioctl/columns.hpp"
#include "tools/nvioctl/monitors.hpp"
#include "tools/nvioctl/xids.hpp"
#include "tools/tools.hpp"

#include "nvioctl.skel.h" // must follow the headers of its types

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace gpusnoop::nvioctl {
namespace {

constexpr ToolSpec about{
    .name = "nvioctl",
    .summary = "Shows calls into the GPU driver (ioctl, open, close, mmap) by process, with latency and result.",
    .examples = "  nvioctl                      # calls of all processes by command, until Ctrl-C\n"
                "  nvioctl 1                    # a table every second, including calls that hang\n"
                "  nvioctl --by pod 5           # which pod keeps the driver busy\n"
                "  nvioctl --no-monitor 5       # without nvidia-smi, nvtop, DCGM and others that only poll\n"
                "  nvioctl -x                   # only failed calls, with the driver's status\n"
                "  nvioctl -e -l 10000          # one line per call of 10 ms or more\n"
                "  nvioctl -H latency -p 1234   # a histogram per command of one process\n"
                "  nvioctl --xid                # GPU errors (Xids), with the last calls of the process\n"
                "  nvioctl --json 1             # one JSON object per row and second\n",
    .open = BpfObject::open<nvioctl_bpf>,
    .attach_names = driver_hook_names,
};

class NvIoctl : public CallTool {
public:
    NvIoctl();

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void record(Output& output, const RingRecord& record) override;
    void delta(const CallDelta& delta) override { monitors_.note_call(delta.key); }
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    void forget(const std::set<ImageId>& images) override { monitors_.forget(images); }

private:
    nvioctl_bpf& skeleton() const { return bpf_.as<nvioctl_bpf>(); }
    void choose_hooks();
    void print_rows(Output& output, uint64_t wall_ns, uint64_t interval_ns);
    bool left_out(const call_key& key, uint64_t calls);
    void report_left_out(Output& output);

    Settings settings_;
    std::optional<DriverHooks> hooks_;
    std::optional<PendingCalls> pending_calls_;
    std::optional<XidLines> xids_;
    std::optional<DriverLayouts> layouts_;
    Monitors monitors_;
    std::set<ImageId> monitors_left_out_; // monitors whose calls were left out since the last report
    uint64_t calls_left_out_ = 0;
};

NvIoctl::NvIoctl() : CallTool(about, settings_)
{
    settings_.sort = "total_ns";
    line_fields_ = line_fields();
    fill_line_ = [this](CallLine& line) {
        monitors_.note_call(line.call.key);
        return !left_out(line.call.key, 1);
    };
    add_call_options("command, device, class, ", "command,device,pid", "latency");
    add_least("calls", settings_.least_ns);
    CommandLine& line = command_line();
    line.flag("--no-monitor", "omit processes that only query GPU state (nvidia-smi, nvtop, DCGM); print how many",
              settings_.no_monitor);
    line.flag("--xid", "only GPU errors (Xids), each with the last calls of its process", settings_.xid);
}

RunPlan NvIoctl::plan()
{
    RunPlan plan = begin_plan();
    validate_options(settings_, options_);
    plan.traced = settings_.xid ? "Xid reports" : options_.failed_only ? "driver calls that fail" : "driver calls";
    plan.noun = settings_.xid ? "Xid report" : traced("driver call") + at_least(settings_.least_ns);
    if (settings_.no_monitor)
        plan.noun += " (monitors left out)";
    plan.lines |= settings_.xid;
    shows_rows_ &= !settings_.xid;
    return finish_plan(std::move(plan));
}

void NvIoctl::choose_hooks()
{
    if (is_confidentiality_lockdown())
        throw Error("cannot trace driver calls: this kernel is locked down in confidentiality mode, which forbids "
                    "kprobes, tracepoints, and BPF programs that read kernel memory",
                    "the other tools work; for this one, boot with lockdown=integrity (see man 7 kernel_lockdown)");
    const auto hook = std::ranges::find(driver_hook_names, options_.attach);
    hooks_.emplace(opened_.object, hook == std::end(driver_hook_names)
                                       ? std::nullopt
                                       : std::optional(static_cast<DriverHook>(hook - std::begin(driver_hook_names))));
    opened_.kernel_hooks = &*hooks_;
    if (settings_.xid)
        xids_.emplace(opened_.object);
    else
        leave_out_xids(opened_.object);
}

void NvIoctl::configure(const Filters& filters)
{
    CallTool::configure(filters);
    choose_hooks();
    auto& data = *skeleton().rodata;
    data.least_ns = settings_.least_ns;
    data.keep_recent = settings_.xid;
    if (xids_)
        xids_->configure(bpf_);
}

void NvIoctl::load()
{
    CallTool::load();
    layouts_.emplace(bpf_map__fd(skeleton().maps.command_layouts), bpf_map__fd(skeleton().maps.size_layouts));
    pending_calls_.emplace(bpf_map__fd(skeleton().maps.in_flight));
    if (xids_)
        xids_->attach(bpf_map__fd(skeleton().maps.recent));
}

void NvIoctl::record(Output& output, const RingRecord& record)
{
    if (const auto* xid = record.as<xid_record>(RECORD_XID); xid && xids_)
        xids_->add(*xid);
    else
        CallTool::record(output, record);
}

bool NvIoctl::tick(Output& output)
{
    if (xids_)
        xids_->print(output, processes(), false);
    layouts_->refresh();
    monitors_.tick();
    return CallTool::tick(output);
}

void NvIoctl::print(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (xids_)
        xids_->print(output, processes(), true);
    if (shows_rows_)
        print_rows(output, wall_ns, interval_ns);
    report_left_out(output);
}

// True if calls are left out because a monitor made them (--no-monitor). Counts these calls.
bool NvIoctl::left_out(const call_key& key, uint64_t calls)
{
    if (!settings_.no_monitor || !monitors_.only_polls(key.image))
        return false;
    monitors_left_out_.insert(ImageId(key.image));
    calls_left_out_ += calls;
    return true;
}

void NvIoctl::report_left_out(Output& output)
{
    const Loss left_out[] = {
        {"returns_missed", "calls were not counted because their return was missed", pending_calls_->drain_missed()},
        {"monitors_left_out", "processes left out (--no-monitor): they only query GPU state",
         monitors_left_out_.size()},
        {"monitor_calls_left_out", "calls of these processes left out", calls_left_out_},
    };
    output.lost(left_out);
    monitors_left_out_.clear();
    calls_left_out_ = 0;
}

void NvIoctl::print_rows(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    DriverGroups groups(settings_, processes());
    for (const CallDelta& delta : calls())
        if (!left_out(delta.key, delta[CALL_COUNT]))
            groups.add(delta);
    if (!settings_.histogram() && !options_.failed_only)
        for (const driver_call& call : pending_calls_->read())
            if (!left_out(call.key, 1))
                groups.add(call, clock_ns(CLOCK_MONOTONIC));
    print_groups(output, groups, call_context(settings_, interval_ns), wall_ns);
}

} // namespace
} // namespace gpusnoop::nvioctl

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_nvioctl()
{
    return std::make_unique<nvioctl::NvIoctl>();
}
