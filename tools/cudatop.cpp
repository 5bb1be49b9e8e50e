// SPDX-License-Identifier: Apache-2.0
// cudatop: who uses the GPU now, and what for: what the other tools count, of all processes, on one screen.
#include "call_tool.hpp"
#include "clock.hpp"
#include "cudatop_batch.hpp"
#include "cudatop_columns.hpp"
#include "cudatop_detail.hpp"
#include "cudatop_head.hpp"
#include "cudatop_live.hpp"
#include "cudatop_options.hpp"
#include "cudatop_probes.hpp"
#include "driver_hooks.hpp"
#include "driver_layouts.hpp"
#include "kernel_names.hpp"
#include "naming.hpp"
#include "scan_cache.hpp"
#include "skeleton.hpp"
#include "xids.hpp"

#include "../bpf/attach.h"
#include "../bpf/record.h"
#include "cudatop.skel.h" // after the types that it mentions

#include <algorithm>
#include <bpf/bpf.h>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <unistd.h>

namespace gpusnoop::cudatop {
namespace {

using namespace std::chrono_literals;

class CudaTop : public CallTool {
public:
    CudaTop() : CallTool(settings_) {}

    std::string_view name() const override { return "cudatop"; }
    std::string_view summary() const override
    {
        return "Shows who uses the GPUs now, and what they wait for: launches, graphs, copies, memory, waits, driver "
               "calls and errors by process, thread, container or pod.";
    }
    std::string_view examples() const override
    {
        return "  cudatop                     # all processes, on a live screen (? shows its keys)\n"
               "  cudatop --by pod            # pods\n"
               "  cudatop -c pod:NS/NAME      # the processes of one pod\n"
               "  cudatop -p 1234 --by thread # the threads of a process\n"
               "  cudatop --latency           # with the time that launch calls take: a dearer probe\n"
               "  cudatop --cheap             # launches and copies only: the cheapest probes\n"
               "  cudatop -s LIVE             # most memory first\n"
               "  cudatop -b 5 3              # a table every 5 seconds, three times\n"
               "  cudatop -j 1 | jq .         # one JSON object per row and second, every column\n";
    }

    void add_options(CLI::App& app) override { add_own_options(app, settings_); }
    std::string traced() const override { return "GPU use"; }
    bool needs_returns() const override { return settings_.latency; }
    bool measures_durations() const override { return settings_.latency; }
    std::string_view without_returns() const override
    {
        return "waits, memory, results, names and captures are not known";
    }
    std::vector<Hook> hooks(std::span<const Probe> probes) const override
    {
        return hooks_of(probes, settings_.cheap, needs_returns());
    }
    KernelHooks* kernel_hooks() override { return driver_ ? &*driver_ : nullptr; }
    std::unique_ptr<Output> make_output(const Options& options) override;
    std::optional<std::chrono::nanoseconds> usual_interval() const override
    {
        return live_wanted_ ? std::nullopt : std::optional<std::chrono::nanoseconds>(1s);
    }
    bpf_object* open() override;
    void configure(const Options& options, std::span<const Probe> probes, const Filters& filters) override;
    void load() override;
    void begin(const Running& running) override;
    void over() override { live_.reset(); }
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    bool tick(Output& output) override;
    void armed(bool on) override { skeleton_->bss->naming = on; }
    void attached_again() override { skeleton_->bss->attach_generation = COOKIE_SECOND; }

private:
    void settle() override;
    std::vector<Probe> choose_probes() const override { return probes_of_all(settings_.cheap); }
    int load_skeleton() override { return cudatop_bpf::load(skeleton_.get()); }
    bpf_object* object() override { return skeleton_->obj; }
    std::vector<const char*> tables_of(std::span<const ImageId> gone) override;
    bool learn(uint32_t type, const void* data, size_t size) override;
    void look_at(const CallDelta& delta) override;
    void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) override;
    void print_event(Output&, const call_event&) override {}
    void forget(const std::set<ImageId>& images) override;
    void learn_xids();
    void sweep_stacks();
    Snapshot snapshot(const std::set<ImageId>& ended);
    void open_row(const std::map<Key, Group>& groups, const Context& context, const std::set<ImageId>& ended,
                  Snapshot& snapshot);
    void show(const std::set<ImageId>& ended);

    Settings settings_;
    Skeleton<cudatop_bpf> skeleton_;
    std::optional<DriverHooks> driver_;
    std::optional<DriverLayouts> layouts_;
    std::optional<PendingCalls> pending_calls_;
    std::optional<Xids> xids_;
    std::map<uint32_t, XidsOf> xids_of_; // by pid
    std::optional<Waiting> waiting_;
    Tier tier_ = Tier::session;
    bool followed_ = true; // calls to their return
    uint64_t swept_ns_ = clock_ns(CLOCK_MONOTONIC);
    Holdings holdings_;
    std::optional<KernelNames> names_;
    NamingSchedule naming_;
    std::set<std::pair<ImageId, uint64_t>> unnamed_;
    std::optional<Users> users_;
    std::optional<NvmlFigures> figures_;
    std::optional<Head> head_;
    struct Counted { // in the last interval
        std::vector<CallDelta> calls;
        std::vector<Waiting::Part> waits;
        std::vector<driver_call> pending;
        uint64_t wall_ns = 0;
        double seconds = 0;
        Facts facts;
    } counted_;
    bool live_wanted_ = false;
    std::optional<Warnings> warnings_;
    std::optional<Live> live_;
    std::string open_; // id of the row that is shown in full
};

void CudaTop::settle()
{
    settle_options(settings_, options_);
    names_.emplace(settings_.no_cache ? "" : ScanCache::default_folder());
}

bpf_object* CudaTop::open()
{
    skeleton_ = open_skeleton<cudatop_bpf>();
    driver_.emplace(skeleton_->obj, std::nullopt);
    xids_.emplace(skeleton_->obj);
    return skeleton_->obj;
}

void CudaTop::configure(const Options& options, std::span<const Probe> probes, const Filters& filters)
{
    auto& data = *skeleton_->rodata;
    tier_ = filters.tier;
    followed_ = !settings_.cheap && filters.returns;
    configure_shared(data, options, filters);
    configure_probes(data, probes, filters);
    configure_calls(data, settings_, options_);
    // Everything that a row may be asked for later.
    data.per_thread = true;
    data.per_device = followed_;
    data.per_cgroup = false;
    data.per_kernel = true;
    data.per_shape = false;
    data.per_size = true;
    data.measure_latency = followed_;
    data.follow = followed_;
    data.follow_graphs = followed_;
    data.show_waiting = true;
    data.stacks_of_waits = true;
    data.stacks_of_allocations = true;
    data.count_hits = true;
    xids_->configure(data);
    size_tables(skeleton_->obj, {.thread = true, .stack = true});
    bpf_map__set_max_entries(skeleton_->maps.held, settings_.cheap ? 1 : settings_.live_entries);
    holdings_.tell_apart(true, true);
}

void CudaTop::load()
{
    CallTool::load();
    layouts_.emplace(bpf_map__fd(skeleton_->maps.command_layouts), bpf_map__fd(skeleton_->maps.size_layouts));
    pending_calls_.emplace(bpf_map__fd(skeleton_->maps.in_flight));
    waiting_.emplace(bpf_map__fd(skeleton_->maps.waiting), bpf_map__fd(skeleton_->maps.free_places),
                     skeleton_->bss->reported_ns);
    users_.emplace(options_.host_root);
    figures_.emplace(settings_.nvml_library);
    try {
        xids_->attach();
    } catch (const Error& error) {
        verbose(error.what()); // a column without figures
        xids_.reset();
    }
}

// A screen where there is a terminal to show it on, and nobody wants anything else.
std::unique_ptr<Output> CudaTop::make_output(const Options& options)
{
    if (!options.json && !settings_.batch) {
        live_wanted_ = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
        if (!live_wanted_)
            warn("standard input and output are no terminal: tables in place of the screen, as with -b");
    }
    if (!live_wanted_)
        return CallTool::make_output(options);
    warnings_.emplace();
    return make_silent_output();
}

void CudaTop::begin(const Running& running)
{
    head_.emplace(running, Cost(bpf_map__fd(skeleton_->maps.hits), probe_cost(tier_)));
    if (!live_wanted_)
        return;
    live_.emplace(settings_, options_.interval.value_or(1s), running,
                  Live::Requests{.by =
                                     [this](std::string_view by) {
                                         settings_.choose_rows(by);
                                         show({});
                                     },
                                 .open =
                                     [this](const std::string& id) {
                                         open_ = id;
                                         show({});
                                     },
                                 .refresh = [this] { show({}); }});
    show({});
}

bool CudaTop::learn(uint32_t type, const void* data, size_t size)
{
    if (type == RECORD_NAME && size >= sizeof(name_record)) {
        names_->learn(*static_cast<const name_record*>(data), size);
    } else if (type == RECORD_XID && size >= sizeof(xid_record) && xids_) {
        xids_->add(*static_cast<const xid_record*>(data));
    } else if ((type == RECORD_REPLACED || type == RECORD_CONTEXT_ENDED) && size >= sizeof(holding_record)) {
        collect(); // what was allocated before
        holdings_.learn(*static_cast<const holding_record*>(data));
    } else {
        return false;
    }
    return true;
}

std::vector<const char*> CudaTop::tables_of(std::span<const ImageId> gone)
{
    std::vector<const char*> tables = CallTool::tables_of(gone);
    tables.insert(tables.end(), {"graphs", "execs", "address_spaces", "allocations", "physical_memory", "ranges",
                                 "context_bytes", "held_bytes"});
    collect();
    if (std::ranges::any_of(gone, [this](const ImageId& image) { return holdings_.holds(image); }))
        tables.insert(tables.end(), {"held", "physical_handles", "physicals", "mappings"});
    return tables;
}

void CudaTop::look_at(const CallDelta& delta)
{
    const call_key& key = delta.key;
    const Part part = part_of(key);
    if (part == Part::memory)
        holdings_.add(delta);
    if (part != Part::launch || !key.subject || key.kind != KIND_LAUNCH)
        return;
    if (names_->name(key.image, key.subject))
        unnamed_.erase({key.image, key.subject});
    else
        unnamed_.emplace(key.image, key.subject);
}

bool CudaTop::tick(Output& output)
{
    if (!skeleton_->bss->traced_since)
        skeleton_->bss->traced_since = clock_ns(CLOCK_BOOTTIME);
    layouts_->refresh();
    sweep_stacks();
    waiting_->forget_ended();
    CallTool::tick(output);
    names_->tick();
    return naming_.tick(unnamed_.size());
}

// The table of stacks has room for so many, and forgets none by itself. One that comes again gets its place back.
void CudaTop::sweep_stacks()
{
    constexpr uint64_t pause_ns = 30'000'000'000;
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now - swept_ns_ < pause_ns)
        return;
    swept_ns_ = now;
    std::set<uint32_t> held;
    for (const auto& [row, amount] : holdings_.now())
        held.insert(static_cast<uint32_t>(row.stack & ~STACK_WITHOUT_FIRST));
    const int map = bpf_map__fd(skeleton_->maps.stacks);
    std::vector<uint32_t> idle;
    uint32_t id = 0;
    for (const uint32_t* before = nullptr; bpf_map_get_next_key(map, before, &id) == 0; before = &id)
        if (!held.contains(id))
            idle.push_back(id);
    for (const uint32_t stack : idle)
        bpf_map_delete_elem(map, &stack);
}

void CudaTop::learn_xids()
{
    if (!xids_)
        return;
    for (const XidReport& report : xids_->take(clock_ns(CLOCK_MONOTONIC), false))
        if (report.pid) {
            XidsOf& of = xids_of_[*report.pid];
            of.last = report.xid;
            of.count++;
        }
}

void CudaTop::forget(const std::set<ImageId>& images)
{
    for (const ImageId& image : images) {
        names_->forget(image);
        xids_of_.erase(image.pid);
        std::erase_if(unnamed_, [&](const auto& item) { return item.first == image; });
    }
    holdings_.forget(images);
}

void CudaTop::report(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    interval_ns = waiting_->end_interval(clock_ns(CLOCK_MONOTONIC), interval_ns);
    learn_xids();
    CallTool::report(output, wall_ns, interval_ns);
}

Snapshot CudaTop::snapshot(const std::set<ImageId>& ended)
{
    Groups groups(settings_.rows, settings_.latency, *names_, processes());
    for (const CallDelta& delta : counted_.calls)
        groups.add(delta);
    for (const Waiting::Part& part : counted_.waits)
        groups.add(part);
    for (const driver_call& call : counted_.pending)
        groups.add(call, clock_ns(CLOCK_MONOTONIC));
    groups.add_held(holdings_, ended);
    if (!settings_.rows.kernel && !settings_.rows.device && !settings_.rows.who.thread)
        for (const ImageId& image : processes().images())
            groups.add_idle(image);
    const Context context{{options_, settings_, processes(), counted_.seconds, probes()},
                          *users_,
                          *figures_,
                          xids_of_,
                          followed_,
                          driver_->waits_for().empty(),
                          xids_.has_value()};
    const std::map<Key, Group> joined = groups.joined();
    Snapshot snapshot;
    snapshot.wall_ns = counted_.wall_ns;
    snapshot.seconds = counted_.seconds;
    snapshot.by = settings_.by.value_or("pid");
    snapshot.columns = columns(context);
    snapshot.rows = rows(joined, context);
    snapshot.totals = {total(snapshot.rows, context)};
    if (!open_.empty())
        open_row(joined, context, ended, snapshot);
    add_facts(snapshot, counted_.facts, *figures_);
    return snapshot;
}

void CudaTop::open_row(const std::map<Key, Group>& groups, const Context& context, const std::set<ImageId>& ended,
                       Snapshot& snapshot)
{
    const Interval interval{
        counted_.calls,
        counted_.waits,
        counted_.pending,
        holdings_,
        ended,
        *names_,
        [this](const ImageId& image, int32_t stack, uint64_t caller) { return frames(image, stack, caller); }};
    snapshot.detail_of = open_;
    for (const auto& [key, group] : groups)
        if (row_id(key) == open_)
            snapshot.detail = detail(key, group.who.images, interval, context);
}

void CudaTop::show(const std::set<ImageId>& ended)
{
    Snapshot now = snapshot(ended);
    now.messages = warnings_->take();
    live_->show(std::move(now));
}

void CudaTop::print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds)
{
    figures_->refresh();
    counted_ = {.calls = {calls.begin(), calls.end()},
                .waits = waiting_->take(0),
                .pending = pending_calls_->take(),
                .wall_ns = wall_ns,
                .seconds = seconds,
                .facts = head_->facts(seconds, processes().pids().size())};
    if (live_)
        show(gone());
    else if (options_.json)
        print_json(output, snapshot(gone()), settings_.arrangement());
    else
        print_text(output, snapshot(gone()), settings_.arrangement(), options_.rows);
    // What is shown again does not bring back those that are forgotten now.
    auto forgotten = [this](const auto& call) { return gone().contains(call.key.image); };
    std::erase_if(counted_.calls, forgotten);
    std::erase_if(counted_.waits, forgotten);
    std::erase_if(counted_.pending, forgotten);
}

} // namespace
} // namespace gpusnoop::cudatop

int main(int argc, char** argv)
{
    gpusnoop::cudatop::CudaTop tool;
    return gpusnoop::run_tool(argc, argv, tool);
}
