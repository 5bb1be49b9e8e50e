// SPDX-License-Identifier: Apache-2.0
// nvioctl: calls into GPU drivers, by name, status and latency; and what was called last before an Xid.
#include "call_fields.hpp"
#include "call_tool.hpp"
#include "clock.hpp"
#include "driver_devices.hpp"
#include "driver_hooks.hpp"
#include "driver_layouts.hpp"
#include "monitors.hpp"
#include "nvioctl_columns.hpp"
#include "nvioctl_xids.hpp"
#include "skeleton.hpp"

#include "nvioctl.skel.h" // after the types that it mentions

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>

namespace gpusnoop::nvioctl {
namespace {

class NvIoctl : public CallTool {
public:
    NvIoctl() : CallTool(settings_) { settings_.of_functions = false; }

    std::string_view name() const override { return "nvioctl"; }
    std::string_view summary() const override
    {
        return "Shows calls into GPU drivers (NVIDIA's and AMD's ioctls, open, close and mmap): which, from whom, how "
               "long, and what the driver answered.";
    }
    std::string_view examples() const override
    {
        return "  nvioctl                      # calls of all processes by command, until Ctrl-C\n"
               "  nvioctl 1                    # a table each second, with calls that hang\n"
               "  nvioctl --by pod 5           # which pod keeps the driver busy\n"
               "  nvioctl --no-monitor 5       # without nvidia-smi, nvtop, DCGM and others that only poll\n"
               "  nvioctl -x                   # only calls that failed, with the driver's status\n"
               "  nvioctl -e -l 10000          # one line per call of 10 ms or more\n"
               "  nvioctl -H latency -p 1234   # a histogram per command of one process\n"
               "  nvioctl --xid                # errors of a GPU, with the last calls of the process\n"
               "  nvioctl --json 1             # one JSON object per row and second\n";
    }

    void add_options(CLI::App& app) override;
    std::string traced() const override
    {
        return settings_.xid ? "Xid reports" : options_.failed_only ? "driver calls that fail" : "driver calls";
    }
    std::span<const std::string_view> attach_names() const override { return driver_hook_names; }
    KernelHooks* kernel_hooks() override { return hooks_ ? &*hooks_ : nullptr; }
    bpf_object* open() override;
    void configure(const Options& options, std::span<const Probe> probes, const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    void attached_again() override {}

private:
    bool shows_rows() const override { return !settings_.xid && CallTool::shows_rows(); }
    void settle() override;
    int load_skeleton() override { return nvioctl_bpf::load(skeleton_.get()); }
    bpf_object* object() override { return skeleton_->obj; }
    void look_at(const CallDelta& delta) override { monitors_.see(delta.key); }
    bool learn(uint32_t type, const void* data, size_t size) override;
    void forget(const std::set<ImageId>& images) override { monitors_.forget(images); }
    std::vector<const char*> tables_of(std::span<const ImageId>) override { return {}; }
    void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) override;
    void print_event(Output& output, const call_event& event) override;
    bool left_out(const call_key& key, uint64_t calls);
    void tell_left_out(Output& output);

    Settings settings_;
    Skeleton<nvioctl_bpf> skeleton_;
    std::optional<DriverHooks> hooks_;
    std::optional<PendingCalls> pending_calls_;
    std::optional<CallEvents> lines_;
    std::optional<XidLines> xids_;
    std::optional<DriverLayouts> layouts_;
    Monitors monitors_;
    std::set<ImageId> monitors_left_out_; // since the last report
    uint64_t calls_left_out_ = 0;
};

void NvIoctl::add_options(CLI::App& app)
{
    settings_.sort = "total_ns";
    settings_.latency = true;
    add_call_options(app, "command, device, class, ", "command,device,pid", "latency");
    app.add_option_function<double>(
           "-l,--least",
           [this](double least_us) {
               if (!(least_us >= 0 && least_us <= 1e12)) // a NaN is neither
                   throw CLI::ValidationError("", "a least latency (-l) is a number of microseconds, at most 1e12");
               settings_.least_ns = static_cast<uint64_t>(least_us * 1000);
           },
           "only calls that last at least so many microseconds")
        ->type_name("MIN_US");
    app.add_flag("--no-monitor", settings_.no_monitor,
                 "leave out processes that only ask how a GPU is (nvidia-smi, nvtop, DCGM); says how many");
    app.add_flag("--xid", settings_.xid, "only errors of a GPU (Xid), each with the last calls of its process");
}

void NvIoctl::settle()
{
    Settings& s = settings_;
    if (s.histogram() && s.measure != "latency")
        throw UsageError(fmt::format("-H takes latency, not '{}'", s.measure));
    if (s.xid && (s.events || s.histogram() || s.by || options_.failed_only || s.no_monitor || s.least_ns))
        throw UsageError("--xid shows lines of its own: leave out --by, -e, -H, -x, -l and --no-monitor");
    check_sort(s.sort);
    const Dimension own[] = {{"command", &s.command}, {"device", &s.node}, {"class", &s.object_class}};
    if (s.by) {
        parse_by(*s.by, s.view, own, s.of_functions);
    } else {
        s.command = true;
        s.node |= !s.histogram();
        s.view.who.pid |= !s.histogram();
    }
}

bpf_object* NvIoctl::open()
{
    skeleton_ = open_skeleton<nvioctl_bpf>();
    const auto way = std::ranges::find(driver_hook_names, options_.attach);
    hooks_.emplace(skeleton_->obj, way == std::end(driver_hook_names)
                                       ? std::nullopt
                                       : std::optional(static_cast<DriverHook>(way - std::begin(driver_hook_names))));
    if (settings_.xid)
        xids_.emplace(skeleton_->obj);
    else
        leave_out_xids(skeleton_->obj);
    return skeleton_->obj;
}

void NvIoctl::configure(const Options& options, std::span<const Probe>, const Filters& filters)
{
    auto& data = *skeleton_->rodata;
    configure_shared(data, options, filters);
    configure_calls(data, settings_, options);
    data.least_ns = settings_.least_ns;
    data.keep_recent = settings_.xid;
    if (xids_)
        xids_->configure(data);
    size_tables(skeleton_->obj);
}

void NvIoctl::load()
{
    CallTool::load();
    layouts_.emplace(bpf_map__fd(skeleton_->maps.command_layouts), bpf_map__fd(skeleton_->maps.size_layouts));
    pending_calls_.emplace(bpf_map__fd(skeleton_->maps.in_flight));
    if (xids_)
        xids_->attach(bpf_map__fd(skeleton_->maps.recent));
    lines_.emplace(options_, settings_, processes(), std::span<const Probe>(),
                   std::initializer_list<Column>{
                       {"DEVICE", "device", Unit::text, 12},
                       {"COMMAND", "command", Unit::text, 36},
                       {"", "request", Unit::hex, 0, false},
                       {"", "subject", Unit::hex, 0, false},
                       {"", "class", Unit::text, 0, false},
                       {"BYTES", "bytes", Unit::bytes, 7},
                       {"", "virtual_bytes", Unit::bytes, 0, false},
                   },
                   std::initializer_list<Column>{
                       {"RESULT", "result", Unit::text, 8},
                       {"", "result_code", Unit::count, 0, false},
                   });
}

bool NvIoctl::learn(uint32_t type, const void* data, size_t size)
{
    if (type != RECORD_XID || size < sizeof(xid_record) || !xids_)
        return false;
    xids_->add(*static_cast<const xid_record*>(data));
    return true;
}

bool NvIoctl::tick(Output& output)
{
    if (xids_)
        xids_->print(output, processes(), false);
    layouts_->refresh();
    return CallTool::tick(output);
}

void NvIoctl::report(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (xids_)
        xids_->print(output, processes(), true);
    CallTool::report(output, wall_ns, interval_ns);
    tell_left_out(output);
}

// A monitor's, where those are not to be shown.
bool NvIoctl::left_out(const call_key& key, uint64_t calls)
{
    if (!settings_.no_monitor || !monitors_.only_polls(key.image))
        return false;
    monitors_left_out_.insert(ImageId(key.image));
    calls_left_out_ += calls;
    return true;
}

void NvIoctl::tell_left_out(Output& output)
{
    const Loss left_out[] = {
        {"returns_missed", "calls returned unseen and are not counted: too many at once for a kprobe",
         pending_calls_->take_missed()},
        {"monitors_left_out", "left out (--no-monitor): processes that only ask how a GPU is",
         monitors_left_out_.size()},
        {"monitor_calls_left_out", "left out with them: calls", calls_left_out_},
    };
    output.lost(left_out);
    monitors_left_out_.clear();
    calls_left_out_ = 0;
}

void NvIoctl::print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds)
{
    DriverGroups groups(settings_, processes());
    for (const CallDelta& delta : calls)
        if (!left_out(delta.key, delta.count))
            groups.add(delta);
    if (!settings_.histogram() && !options_.failed_only)
        for (const driver_call& call : pending_calls_->take())
            if (!left_out(call.key, 1))
                groups.add(call, clock_ns(CLOCK_MONOTONIC));
    const Context context{options_, settings_, processes(), seconds, {}};
    if (settings_.histogram())
        print_histograms(output, groups, context, wall_ns);
    else
        print_groups(output, groups, context, wall_ns,
                     [this](const DriverKey& key, const DriverGroup& group) { return row_frames(key, group.who); });
}

void NvIoctl::print_event(Output& output, const call_event& event)
{
    const call_key& key = event.key;
    monitors_.see(key);
    if (left_out(key, 1))
        return;
    const bool is_ioctl = key.kind == ENTRY_IOCTL;
    const auto number = object_class(key);
    const Cell bytes = event.memory.sized ? Cell(uint64_t{event.memory.bytes}) : Cell();
    lines_->print(output, event,
                  {node_name(key.driver.node, key.driver.minor), command_text(key),
                   is_ioctl ? Cell(key.subject & 0xffffffff) : Cell(),
                   key.flags & CALL_SUBJECT ? Cell(key.subject >> 32) : Cell(),
                   number ? Cell(class_text(number)) : Cell(), key.flags & CALL_VIRTUAL ? Cell() : bytes,
                   key.flags & CALL_VIRTUAL ? bytes : Cell()},
                  {outcome_text(key.driver.outcome, key.result), result_code(key.driver.outcome, key.result)},
                  event_frames(event));
}

} // namespace
} // namespace gpusnoop::nvioctl

int main(int argc, char** argv)
{
    gpusnoop::nvioctl::NvIoctl tool;
    return gpusnoop::run_tool(argc, argv, tool);
}
