// SPDX-License-Identifier: Apache-2.0
// gpuspend: shows the GPUs that each pod, container, user or process holds and uses, and their cost.
#include "base/clock.hpp"
#include "base/text.hpp"
#include "output/metrics.hpp"
#include "rows/held_table.hpp"
#include "run/call_tool.hpp"
#include "run/report_notes.hpp"
#include "tools/gpuspend/options.hpp"
#include "tools/gpuspend/slices.hpp"
#include "tools/gpuspend/spend_state.hpp"
#include "tools/tools.hpp"

#include "gpuspend.skel.h" // must follow the headers of its types

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <sys/utsname.h>
#include <utility>

namespace gpusnoop::gpuspend {
namespace {

constexpr ToolSpec about{
    .name = "gpuspend",
    .summary = "Shows which pods, containers, users or processes hold and use the GPUs, and what that costs.",
    .examples = "  gpuspend                    # GPUs held and used, until Ctrl-C\n"
                "  gpuspend 60                 # a table every minute\n"
                "  gpuspend -d 8h --prices /etc/gpu-prices   # also show costs\n"
                "  gpuspend --by namespace,device 60   # by namespace and GPU\n"
                "  gpuspend --by pid 10        # by process\n"
                "  gpuspend --split busy 60    # divide shared GPUs by the busy time that the driver reports\n"
                "  gpuspend --cheap 60         # launches and copies only: the cheapest probes\n"
                "  gpuspend --csv -d 24h --prices /etc/gpu-prices   # CSV for billing (FOCUS 1.3)\n"
                "  gpuspend --state /var/lib/gpuspend --teams /etc/gpu-teams --by team 60   # totals across restarts\n"
                "  gpuspend --json 60          # one JSON object per row and minute\n",
    .open = BpfObject::open<gpuspend_bpf>,
    .ring_mb = 4, // less than other tools, because there are no lines (-e)
    .without_returns = "waits and memory are unknown",
};

std::string node_name()
{
    utsname name{};
    uname(&name);
    return name.nodename;
}

constexpr uint32_t live_entries = 1'000'000; // allocations that can be tracked at once

class GpuSpend : public CallTool {
public:
    GpuSpend() : CallTool(about, settings_)
    {
        settings_.sort = "device_time_ns";
        add_own_options(command_line(), settings_);
    }

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void delta(const CallDelta& delta) override { slices_->add(delta); }
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    void forget(const std::set<ImageId>& images) override { slices_->forget(images); }

private:
    gpuspend_bpf& skeleton() const { return bpf_.as<gpuspend_bpf>(); }
    std::unique_ptr<Output> make_output();
    void read_files();
    void on_tracing_started(const Running& running);
    void add_slice();
    void keep_sums(uint64_t wall_ns);
    std::vector<std::string> notes(const Bill& bill) const;

    Settings settings_;
    Prices prices_;
    std::optional<Slices> slices_;
    Teams teams_;
    std::optional<Ledger> ledger_; // device time since sums_ was last updated, by tenant id
    SpendState sums_;              // totals by tenant name since the last report; with --state, since the state
                                   // file was created
    std::optional<StateFile> state_;
    Metrics* metrics_ = nullptr;   // the output if metrics are exported, else null
    std::optional<Error> unsaved_; // error of the last attempt to save the state
    uint64_t ticks_ = 0;
    uint64_t until_ns_ = 0; // end of the last slice, CLOCK_MONOTONIC
    bool followed_ = false; // returns of calls are traced
    Tier tier_ = Tier::session;
    std::optional<Cost> cost_;
    uint64_t reported_ns_ = 0; // time of the last report, CLOCK_MONOTONIC
};

RunPlan GpuSpend::plan()
{
    RunPlan plan = begin_plan();
    validate_options(settings_, options_);
    if (settings_.metrics.wanted())
        plan.usual_interval = std::chrono::seconds(15); // a common scrape interval of Prometheus
    using enum Layers;
    plan.traced = "GPU use";
    plan.noun = "use of a GPU";
    plan.hooks.make_output = [this] { return make_output(); };
    plan.hooks.begin.emplace_back([this](const Running& running) { on_tracing_started(running); });
    plan.hooks.check_results = [this] {
        if (unsaved_)
            throw Error(*unsaved_);
    };
    shows_rows_ = false; // rows are tenants, not calls
    plan.nvml_library = settings_.nvml_library;
    plan.programs = {
        {"launch", driver, launch_calls, false, "launches are unknown"},
        {"often", driver, often_launched, false, slower_launches, true, false, "launch"},
        {"copy", driver, copy_calls, false, "copies are unknown"},
        {"batch", driver, batch_calls, false, "copies in batches are not counted"},
    };
    if (settings_.cheap)
        return finish_plan(std::move(plan));
    constexpr std::string_view no_graphs = "kernels in graphs are unknown, and captured kernels count as launched";
    constexpr std::string_view no_memory = "memory is unknown";
    const Program returning[] = {
        {"state", both, device_calls, true, "devices are unknown unless NVML reports them"},
        {"follow", driver, capture_calls, true, no_graphs},
        {"follow", driver, graph_calls, true, no_graphs},
        {"event", driver, event_calls, false, no_graphs},
        {"life", driver, stream_calls, true, stale_streams},
        {"wait", driver, wait_calls, true, "waits are unknown"},
        {"alloc", driver, alloc_calls, true, no_memory},
        {"free", driver, free_calls, true, no_memory},
        {"handle", driver, handle_calls, true, no_memory},
        {"release", driver, context_ends, true, no_memory},
    };
    plan.programs.insert(plan.programs.end(), std::begin(returning), std::end(returning));
    return finish_plan(std::move(plan));
}

std::unique_ptr<Output> GpuSpend::make_output()
{
    if (settings_.metrics.wanted()) {
        auto metrics = std::make_unique<Metrics>(settings_.metrics, about.name, GPUSNOOP_VERSION);
        metrics_ = metrics.get();
        return metrics;
    }
    return settings_.csv ? make_csv_output() : gpusnoop::make_output(options_);
}

// Reads the files named by options. Call this before the BPF programs are loaded: loading takes a while, and an error
// in a file should be reported at once.
void GpuSpend::read_files()
{
    if (!settings_.prices.empty())
        prices_ = Prices::of_file(settings_.prices, node_name());
    if (!settings_.teams.empty())
        teams_ = Teams::of_file(settings_.teams);
    sums_ = {.view = settings_.by.value_or("pod"), .began_ns = 0, .saved_ns = 0, .ledger = Ledger(settings_.split)};
    if (!settings_.state.empty()) {
        state_.emplace(settings_.state);
        if (auto kept = state_->read()) {
            if (kept->view != sums_.view || kept->ledger.split() != settings_.split)
                throw Error(fmt::format("state file '{}' was saved with --by {} --split {}", settings_.state,
                                        printable(kept->view), split_name(kept->ledger.split())),
                            "use the same options, or name another file");
            sums_ = std::move(*kept);
        }
    }
}

void GpuSpend::configure(const Filters& filters)
{
    read_files();
    CallTool::configure(filters);
    auto& data = *skeleton().rodata;
    followed_ = !settings_.cheap && filters.returns;
    data.per_device = followed_;
    data.often_launched = row_number(probes_, often_launched);
    data.per_kernel = false;
    data.per_shape = false;
    data.per_size = false;
    data.count_hits = true;
    tier_ = filters.tier;
    data.measure_latency = followed_; // needed for the duration of waits
    data.follow = followed_;
    data.follow_graphs = followed_;
    size_held_table(bpf_, settings_.cheap ? 1 : live_entries);
    ledger_.emplace(settings_.split);
    holdings_.distinguish(false, true);
}

void GpuSpend::load()
{
    CallTool::load();
    cost_.emplace(bpf_map__fd(skeleton().maps.hits), tier_);
    slices_.emplace(settings_, options_.host_root, processes(), prices_, teams_);
}

void GpuSpend::on_tracing_started(const Running& running)
{
    reported_ns_ = clock_ns(CLOCK_MONOTONIC);
    cost_->since_last(0);
    if (metrics_)
        metrics_->serve(running.loop);
}

bool GpuSpend::tick(Output& output)
{
    constexpr uint64_t save_interval_s = 10; // a killed run loses at most this much time, which is reported as unseen
    CallTool::tick(output);
    add_slice();
    if (++ticks_ % save_interval_s == 0)
        keep_sums(clock_ns(CLOCK_REALTIME));
    return false;
}

// Adds the ledger to the sums, using the tenants' current names, and saves the state.
void GpuSpend::keep_sums(uint64_t wall_ns)
{
    sums_.ledger.add(ledger_->named([this](const Tenant& tenant) { return slices_->name(tenant); }));
    ledger_.emplace(settings_.split);
    slices_->forget_names();
    constexpr uint64_t min_warning_ns = 1'000'000'000; // NTP may set the clock back by less
    const uint64_t back_ns = sums_.saved_at(wall_ns);
    if (!state_)
        return;
    if (back_ns > min_warning_ns)
        warn(fmt::format(
            "the clock was set back by {}: the totals in state file '{}' stay valid, and their start time is "
            "moved back by the same amount; check the clock",
            time_text(back_ns), printable(settings_.state)));
    try {
        state_->write(sums_);
        unsaved_.reset();
    } catch (const Error& error) {
        if (!unsaved_)
            warn(error.what());
        unsaved_ = error;
    }
}

// Adds a slice that begins where the last slice ended. The first call only sets the start.
void GpuSpend::add_slice()
{
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    const uint64_t since_ns = std::exchange(until_ns_, now_ns);
    if (!since_ns)
        return;
    const bool all_processes = options_.pids.empty() && !options_.tid && options_.comm.empty() &&
                               options_.cgroup.empty() && options_.program.empty();
    std::set<ImageId> selected;
    if (!all_processes) {
        for (const ImageId& image : processes().images())
            selected.insert(image);
        for (const pid_t pid : running_ ? running_->users() : std::vector<pid_t>())
            selected.insert(processes().track(static_cast<uint32_t>(pid)));
    }
    const Slice slice = slices_->next_slice(now_ns - since_ns, now_ns, holdings_, all_processes ? nullptr : &selected);
    ledger_->add(slice);
    for (const auto& [tenant, uids] : slices_->drain_pods())
        for (const std::string& uid : uids)
            ledger_->saw_pod(tenant, uid);
}

// Sentences about idle tenants, and about values that are not known.
std::vector<std::string> GpuSpend::notes(const Bill& bill) const
{
    std::vector<std::string> lines = sentences(make_bill(sums_.ledger, false), prices_.currency());
    const Grants& grants = slices_->grants();
    if (bill.devices.empty())
        lines.emplace_back(
            "no GPU found (asked NVML, the driver and the kubelet), so no allocation, idle time or cost can be shown");
    else if (slices_->gpus().source() == "sysfs")
        lines.emplace_back("BUSY% and --split busy are not available: AMD's driver does not report busy time by "
                           "process");
    else if (slices_->gpus().source() != "nvml")
        lines.emplace_back(
            fmt::format("no NVML: the list of GPUs comes from the {}, and their processes are known only by open files "
                        "and calls; busy time is unknown",
                        slices_->gpus().source()));
    if (!settings_.prices.empty())
        for (const std::string& model : bill.unpriced_models)
            lines.push_back(fmt::format("--prices has no price for the model '{}'", model));
    if (slices_->dcgm() && !slices_->dcgm()->error().empty())
        lines.push_back(fmt::format("cannot use DCGM's page: {}", slices_->dcgm()->error()));
    if (const uint64_t unknown = grants.unknown())
        lines.push_back(fmt::format("the kubelet has allocated {} device{} missing from the list of GPUs", unknown,
                                    unknown == 1 ? "" : "s"));
    if (const uint64_t unseen = sums_.unseen_ns(); state_ && unseen >= 1'000'000'000)
        lines.push_back(
            fmt::format("{} of the {} that the state file covers were not observed, because gpuspend did not run",
                        time_text(unseen), time_text(sums_.saved_ns - sums_.began_ns)));
    return lines;
}

void GpuSpend::print(Output& output, uint64_t wall_ns, uint64_t)
{
    add_slice();
    keep_sums(wall_ns);
    const Bill bill = make_bill(sums_.ledger, settings_.rows.device || settings_.csv);
    const auto has_price = [](const auto& one) { return one.first.price.has_value(); };
    const uint64_t before_ns = std::exchange(reported_ns_, clock_ns(CLOCK_MONOTONIC));
    const Cost::Share cost = cost_->since_last(static_cast<double>(reported_ns_ - before_ns) / 1e9);
    const Context context{.options = options_,
                          .settings = settings_,
                          .bill = bill,
                          .currency = prices_.currency(),
                          .priced = std::ranges::any_of(sums_.ledger.devices(), has_price),
                          .since_ns = state_ ? sums_.began_ns : wall_ns - std::min(wall_ns, bill.covered_ns),
                          .wall_ns = wall_ns,
                          .probes_percent = cost.probes_percent,
                          .own_percent = cost.own_percent};
    if (settings_.csv)
        print_focus(output, context);
    else
        print_bill(output, context, notes(bill));
    if (!state_) {
        sums_.began_ns = 0;
        sums_.ledger = Ledger(settings_.split);
    }
}

} // namespace
} // namespace gpusnoop::gpuspend

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_gpuspend()
{
    return std::make_unique<gpuspend::GpuSpend>();
}
