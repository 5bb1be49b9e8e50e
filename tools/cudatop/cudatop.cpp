// SPDX-License-Identifier: Apache-2.0
// cudatop: GPU use and problems of all processes on one screen. It counts the same calls as the other tools.
#include "attach/refusal.hpp"
#include "base/clock.hpp"
#include "base/loop.hpp"
#include "tools/cudatop/options.hpp"
#include "tools/cudatop/programs.hpp"
#include "tools/cudatop/replay.hpp"
#include "tools/cudatop/send_signal.hpp"
#include "tools/cudatop/tool.hpp"
#include "tools/tools.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <unistd.h>
#include <utility>

namespace gpusnoop::cudatop {
namespace {

using namespace std::chrono_literals;

constexpr ToolSpec about{
    .name = "cudatop",
    .summary = "Shows which processes, threads, containers or pods use the GPUs, how, and what is wrong.",
    .examples = "  cudatop                     # all processes, on a live screen (? shows its keys)\n"
                "  cudatop --why               # what is wrong with which process, after 5 seconds\n"
                "  cudatop --by pod            # one row per pod\n"
                "  cudatop -c pod:NS/NAME      # the processes of one pod\n"
                "  cudatop -p 1234 --by thread # the threads of a process\n"
                "  cudatop --latency           # also the duration of launch calls: adds return probes (slower)\n"
                "  cudatop --cheap             # launches and copies only: the cheapest probes\n"
                "  cudatop -s MEM              # most memory first\n"
                "  cudatop -b 5 3              # a table every 5 seconds, three times\n"
                "  cudatop -j 1 | jq .         # one JSON object per row and second, every column\n",
    .open = BpfObject::open<cudatop_bpf>,
    .without_interval = "default: 1",
    .ring_mb = 4, // small, because cudatop prints no individual calls
    .without_returns = "waits, memory, results, names and captures are unknown",
};

} // namespace

CudaTop::CudaTop() : CallTool(about, settings_, {.thread = true, .stack = true})
{
    add_own_options(command_line(), settings_);
    add_ceiling();
}

RunPlan CudaTop::plan()
{
    RunPlan plan = begin_plan();
    names_.emplace(settings_.names.cache_folder(), &wait_budget_);
    std::ranges::for_each(options_.pids, [this](pid_t pid) { names_->expect(pid); });
    const bool screen_wanted = !options_.json && !settings_.batch && !settings_.why && !settings_.metrics.wanted();
    settings_.screen = screen_wanted && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (settings_.screen && !settings_.no_config && !options_.info && !options_.clean) {
        kept_.emplace();
        settings_.preferences = kept_->preferences();
    }
    validate_options(settings_, options_);
    if (screen_wanted && !settings_.screen && !options_.info && !options_.clean)
        warn("standard input and output are not both terminals: printing tables, as with -b");
    plan.traced = "GPU use";
    set_hooks(plan.hooks);
    // Keep the longest durations, because the page of an opened row shows them.
    shows_maxima_ = !settings_.cheap && !settings_.max_overhead;
    plan.noun = settings_.filter.empty() ? "use of a GPU"
                                         : fmt::format("use of a GPU in rows that contain '{}'", settings_.filter);
    plan.screen = settings_.screen;
    plan.nvml_library = settings_.nvml_library;
    plan.programs = programs(settings_.cheap, settings_.latency);
    if (!settings_.screen) // needed for --why, too, because rules compare each interval with the previous one
        plan.usual_interval = 1s;
    if (settings_.why)
        plan.usual_duration = 5s;
    plan.lines |= settings_.why;
    return finish_plan(std::move(plan));
}

void CudaTop::set_hooks(RunHooks& hooks)
{
    hooks.make_output = [this] { return make_output(); };
    hooks.replay = [this](EndingSignals& signals) { replay(signals); };
    hooks.progress = [this](std::string_view step) {
        if (live_)
            live_->starting(step);
    };
    hooks.begin.emplace_back([this](const Running& running) { tracing_began(running); });
    hooks.on_exec = [this](pid_t pid, uint64_t time_ns) { process_replaced(pid, time_ns); };
    hooks.on_exit = [this](pid_t pid) { process_exited(pid); };
    hooks.before_last_report = [this](std::chrono::milliseconds patience) { names_->finish(patience); };
    hooks.end = [this] { end_screen(); };
    hooks.names_lost = [this] { return names_->lost_since_last(); };
}

void CudaTop::replay(EndingSignals& signals)
{
    if (kept_)
        kept_->warn_if_ignored();
    const Preferences chosen = cudatop::replay(settings_, options_, signals);
    if (kept_)
        kept_->keep(chosen);
}

void CudaTop::choose_driver_hooks()
{
    if (is_confidentiality_lockdown()) {
        DriverHooks::leave_out(opened_.object);
        leave_out_xids(opened_.object);
        opened_.remarks.emplace_back("this kernel is locked down in confidentiality mode: driver calls and GPU errors "
                                     "(Xids) are unknown");
        return;
    }
    driver_.emplace(opened_.object, std::nullopt);
    opened_.kernel_hooks = &*driver_;
    xids_.emplace(opened_.object);
}

void CudaTop::configure(const Filters& filters)
{
    CallTool::configure(filters);
    choose_driver_hooks();
    auto& data = *skeleton().rodata;
    tier_ = filters.tier;
    const bool followed = !settings_.cheap && filters.returns; // calls also have return probes
    auto all = [&](std::initializer_list<std::string_view> hooks) {
        return std::ranges::all_of(hooks, [&](std::string_view hook) { return filters.has(hook); });
    };
    known_ = {.launches = all({"launch"}),
              .copies = all({"copy"}),
              .graphs = followed && all({"launch", "follow", "event"}),
              .memory = followed && all({"alloc", "free", "handle", "release"}),
              .waits = followed && all({"wait"}),
              .results = followed};
    // Count by every key that the user may later group rows by, or that the page of an opened row needs.
    data.per_thread = true;
    data.name_threads = true;
    data.per_device = followed;
    data.per_cgroup = false;
    data.often_launched = row_number(probes_, often_launched);
    data.per_kernel = true;
    data.per_shape = false;
    data.distinguish_few_blocks = true;
    data.per_size = true;
    data.measure_latency = followed;
    data.follow = followed;
    data.follow_graphs = data.count_graphs = known_.graphs;
    data.show_waiting = true;
    data.stacks_of_waits = true;
    data.stacks_of_calls = followed;
    data.second = jiffies_per_second();
    data.waits_alone = false;
    data.stacks_of_allocations = true;
    data.count_hits = true;
    if (xids_)
        xids_->configure(bpf_);
    size_held_table(bpf_, settings_.cheap ? 1 : settings_.live_entries);
    // Sampled stacks are limited to their innermost frames, unlike the stacks of -U in other tools.
    bpf_map__set_value_size(skeleton().maps.stacks, 63 * sizeof(uint64_t));
    bpf_map__set_max_entries(skeleton().maps.stacks, 8192);
    bpf_map__set_max_entries(skeleton().maps.recent, 1); // only nvioctl uses this map
    bpf_map__set_max_entries(skeleton().maps.unsent_names, KernelNames::unsent_max);
    bpf_map__set_max_entries(skeleton().maps.thread_names, Processes::thread_names_max);
    holdings_.distinguish(true, true);
}

void CudaTop::load()
{
    CallTool::load();
    names_->read_unsent_from(bpf_map__fd(skeleton().maps.unsent_names));
    layouts_.emplace(bpf_map__fd(skeleton().maps.command_layouts), bpf_map__fd(skeleton().maps.size_layouts));
    pending_calls_.emplace(bpf_map__fd(skeleton().maps.in_flight));
    name_filter_.emplace(options_.comm, processes());
    waits_.emplace(
        bpf_map__fd(skeleton().maps.waiting), bpf_map__fd(skeleton().maps.free_places),
        Waiting::Shared{skeleton().bss->reported_ns, skeleton().bss->has_long_wait, skeleton().bss->places_taken});
    if (known_.waits) {
        waits_->find_earlier(probes_, settings_, options_, found_stacks());
        waits_->find_stacks(probes_, found_stacks());
        track_stuck_calls();
    }
    stacks_.emplace(bpf_map__fd(skeleton().maps.stacks));
    users_.emplace(options_.host_root);
    figures_.emplace(settings_.nvml_library);
    gpus_.emplace(*figures_);
    held_gpus_.emplace(options_.host_root);
    diagnosis_.emplace(processes(), settings_.latency);
    suspensions_.emplace(options_.host_root);
    try {
        if (xids_)
            xids_->attach();
    } catch (const Error& error) {
        verbose(error.what()); // not fatal: the column XID stays empty
        xids_.reset();
    }
}

void CudaTop::track_stuck_calls()
{
    CallSet counted;
    counted.kinds = (known_.launches ? launch_calls.kinds : 0) | (known_.copies ? copy_calls.kinds : 0) |
                    (known_.copies ? batch_calls.kinds : 0) | (known_.memory ? alloc_calls.kinds : 0) |
                    (known_.memory ? free_calls.kinds : 0);
    stuck_calls_.emplace(probes_, counted, options_, waits_->registers(), found_stacks());
}

std::unique_ptr<Output> CudaTop::make_output()
{
    if (settings_.metrics.wanted()) {
        auto metrics = std::make_unique<Metrics>(settings_.metrics, about.name, GPUSNOOP_VERSION);
        metrics_ = metrics.get();
        return metrics;
    }
    if (!settings_.screen)
        return gpusnoop::make_output(options_);
    open_screen(); // opened early, to show progress while the next steps, which are slow, run
    return make_silent_output();
}

void CudaTop::tracing_began(const Running& running)
{
    began_ns_ = clock_ns(CLOCK_MONOTONIC);
    head_.emplace(running, bpf_map__fd(skeleton().maps.hits), tier_, !settings_.max_overhead && !settings_.latency);
    scan_earlier_waits();
    for (const auto later : EarlierWaits::first_scan_delays)
        running.loop.after(later, [this] { scan_earlier_waits(); });
    if (metrics_)
        metrics_->serve(running.loop);
    if (!live_) {
        track_users();
        return;
    }
    show_users();
    running.loop.after(150ms, [this] { // by then, the BPF programs have reported the processes that make calls
        if (!measured())
            show_users();
    });
    live_->begin(running);
}

void CudaTop::open_screen()
{
    live_.emplace(screen_options(settings_, options_), [this](const Action& action) { act(action); });
    live_->starting("Checking what this kernel supports ...");
    if (kept_)
        kept_->warn_if_ignored();
}

void CudaTop::act(const Action& action)
{
    switch (action.kind) {
    case Action::by:
        settings_.choose_rows(action.text);
        return show({});
    case Action::within:
        show_within(action.text);
        return show({});
    case Action::open:
        open_ = action.text;
        since_opened_.restart();
        return show({});
    case Action::refresh:
        return show({});
    case Action::signal:
        return live_->message(send_signal(action.process, action.text, action.number));
    default:
        return;
    }
}

void CudaTop::end_screen()
{
    if (!live_)
        return;
    const Preferences chosen = live_->chosen();
    live_.reset();
    if (kept_)
        kept_->keep(chosen);
}

void CudaTop::show_within(const std::string& id)
{
    if (!id.empty()) {
        within_.emplace(id, settings_);
        settings_.choose_rows("pid");
    } else if (within_) {
        within_->leave(settings_);
        within_.reset();
    }
}

void CudaTop::record(Output& output, const RingRecord& record)
{
    if (const auto* name = record.as<name_record>(RECORD_NAME))
        names_->learn(*name, record.size);
    else if (const auto* xid = record.as<xid_record>(RECORD_XID); xid && xids_)
        xids_->add(*xid);
    else
        CallTool::record(output, record);
}

void CudaTop::delta(const CallDelta& delta)
{
    name_filter_->mark_active(delta.key.image);
    if (part_of(delta.key) == CallPart::launch)
        unnamed_.note(*names_, delta.key);
}

bool CudaTop::tick(Output& output)
{
    layouts_->refresh();
    sweep_stacks();
    waits_->forget_ended();
    scan_earlier_waits();
    if (stuck_calls_ && running_)
        stuck_calls_->inspect(running_->users());
    CallTool::tick(output);
    names_->tick();
    return naming_.tick(unnamed_.size());
}

void CudaTop::process_replaced(pid_t pid, uint64_t time_ns)
{
    if (stuck_calls_)
        stuck_calls_->forget(pid);
    waits_->executed(pid, time_ns);
}

void CudaTop::process_exited(pid_t pid)
{
    if (stuck_calls_)
        stuck_calls_->forget(pid);
    waits_->exited(pid);
    diagnosis_->exited(static_cast<uint32_t>(pid), clock_ns(CLOCK_BOOTTIME));
}

void CudaTop::sweep_stacks()
{
    if (!stacks_->due())
        return;
    std::set<int32_t> held = since_opened_.stacks();
    held.merge(diagnosis_->stacks());
    for (const auto& [row, amount] : holdings_.now())
        held.insert(row.stack);
    held.merge(keep_stacks(held));
    stacks_->keep(held);
}

void CudaTop::learn_xids()
{
    if (!xids_)
        return;
    for (const XidReport& report : xids_->drain(clock_ns(CLOCK_MONOTONIC), false))
        if (report.pid) {
            XidsOf& of = xids_of_[*report.pid];
            of.last = report.xid;
            of.count++;
        }
}

void CudaTop::forget(const std::set<ImageId>& images)
{
    for (const ImageId& image : images) {
        if (name_filter_->includes(image) && !processes().info(image).replaced)
            exited_verdicts_.forgot_process();
        names_->forget(image);
        xids_of_.erase(image.pid);
        unnamed_.forget(image);
        name_filter_->forget(image);
    }
    diagnosis_->forget(images);
    gpus_->forget(images);
}

} // namespace gpusnoop::cudatop

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_cudatop()
{
    return std::make_unique<cudatop::CudaTop>();
}
