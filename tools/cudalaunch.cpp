// SPDX-License-Identifier: Apache-2.0
// cudalaunch: who launches which kernels, how often, how large, how slowly, and which launches fail.
#include "cudalaunch_columns.hpp"
#include "cudalaunch_events.hpp"
#include "kernel_names.hpp"
#include "launches.hpp"
#include "naming.hpp"
#include "skeleton.hpp"
#include "text.hpp"
#include "tool.hpp"
#include "user_symbols.hpp"

#include "../bpf/attach.h"
#include "../bpf/record.h"
#include "cudalaunch.skel.h" // after the types that it mentions

#include <bit>
#include <cstddef>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop {
namespace {

constexpr probe_kind launch_kinds[] = {KIND_LAUNCH, KIND_LAUNCH_LIST, KIND_LAUNCH_LEGACY, KIND_GRAPH_LAUNCH,
                                       KIND_HOST_FUNC};
constexpr probe_kind state_kinds[] = {KIND_CAPTURE_BEGIN, KIND_CAPTURE_END, KIND_GET_FUNCTION, KIND_GET_ALIAS};
constexpr probe_kind device_kinds[] = {KIND_CONTEXT_NEW, KIND_CONTEXT_CREATE, KIND_CONTEXT_SET, KIND_CONTEXT_POP,
                                       KIND_DEVICE_SET};
constexpr probe_kind note_kinds[] = {KIND_SHAPE, KIND_REGISTER};

constexpr size_t table_bytes = 64 << 20; // what the launch table may take over all CPUs

template<class T, size_t N>
void append(std::vector<Probe>& to, Library library, const T (&kinds)[N])
{
    for (Probe& probe : probes(library, kinds))
        to.push_back(std::move(probe));
}

class CudaLaunch : public Tool {
public:
    std::string_view name() const override { return "cudalaunch"; }
    std::string_view summary() const override
    {
        return "Counts CUDA kernel launches as they are made: by kernel, process, thread, stream or device; "
               "with latency, failures and user stacks on request.";
    }
    std::string_view examples() const override
    {
        return "  cudalaunch                  # launches of all processes by kernel, until Ctrl-C\n"
               "  cudalaunch 1                # a table each second\n"
               "  cudalaunch --by pid,kernel 5 1   # which process launches what, once, over 5 seconds\n"
               "  cudalaunch -p 1234 -l       # with the time that the launch call takes on the host\n"
               "  cudalaunch --by pod 5       # which pod launches how much\n"
               "  cudalaunch -c pod:NS/NAME   # the kernels of one pod; also a container's id or name, or a cgroup\n"
               "  cudalaunch -x               # only launches that fail, with the error\n"
               "  cudalaunch -H latency -P    # latency histogram for each process\n"
               "  cudalaunch -e -p 1234       # one line per launch\n"
               "  cudalaunch -U -d 10         # call stacks that launch most, over 10 seconds\n"
               "  cudalaunch --json 1         # one JSON object per row and second\n";
    }

    void add_options(CLI::App& app) override;
    void check(const Options& options) override;
    std::string traced() const override;
    std::vector<Probe> probes() const override;
    std::vector<Hook> hooks(std::span<const Probe> probes) const override;
    bool measures_durations() const override { return settings_.latency; }
    bool needs_returns() const override { return settings_.latency || failed_only_; }
    bool counts_runtime() const override { return settings_.runtime; }
    bpf_object* open() override;
    void configure(const Options& options, std::span<const Probe> probes, const Filters& filters) override;
    void load() override;
    void record(Output& output, const void* data, size_t size) override;
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    void exited(pid_t pid) override;
    bool tick() override;
    void armed(bool on) override { skeleton_->bss->naming = on; }
    void attached_again() override { skeleton_->bss->attach_generation = COOKIE_SECOND; }

private:
    void collect();
    void retire_processes();
    void forget_processes();
    void print_event(Output& output, const launch_event& event);
    std::vector<std::string> frames(const ImageId& image, int32_t stack, uint64_t caller);

    Settings settings_;
    std::optional<std::string> by_;
    std::string api_ = "driver";
    Options options_;
    bool failed_only_ = false;
    Skeleton<cudalaunch_bpf> skeleton_;
    KernelNames names_;
    UserSymbols symbols_;
    NamingSchedule naming_;
    std::optional<LaunchTable> table_;
    std::optional<Processes> processes_;
    std::vector<LaunchDelta> pending_; // since the last report
    std::set<std::pair<ImageId, uint64_t>> unnamed_;
    std::optional<EventLines> lines_;
    std::set<uint32_t> leaving_; // pids whose first thread has ended
    std::set<ImageId> gone_;     // to be forgotten after the next report
};

void CudaLaunch::add_options(CLI::App& app)
{
    app.add_option(
           "--by", by_,
           "rows by kernel, stream, device, pid, comm, thread, container, pod, namespace, cgroup, or several (kernel)")
        ->type_name("WHAT[,WHAT]");
    app.add_flag("-e,--events", settings_.events, "one line per launch");
    app.add_option("-H,--hist", settings_.measure,
                   "histogram of latency, grid, block (threads) or gap (between launches)")
        ->type_name("WHAT");
    app.add_flag("-l,--latency", settings_.latency, "measure the host side of the launch call, and count errors");
    app.add_option("--api", api_, "layer to count at: driver, runtime or both (driver)")->type_name("LAYER");
    app.add_option("-s,--sort", settings_.sort, "column to sort by (launches)")->type_name("COLUMN");
}

void CudaLaunch::check(const Options& options)
{
    constexpr std::pair<std::string_view, Measure> measures[] = {{"", Measure::none},
                                                                 {"latency", Measure::latency},
                                                                 {"grid", Measure::grid},
                                                                 {"block", Measure::block},
                                                                 {"gap", Measure::gap}};
    auto measure = std::ranges::find(measures, settings_.measure, &std::pair<std::string_view, Measure>::first);
    if (measure == std::end(measures))
        throw UsageError(fmt::format("-H takes latency, grid, block or gap, not '{}'", settings_.measure));
    settings_.histogram = measure->second;
    if (api_ != "driver" && api_ != "runtime" && api_ != "both")
        throw UsageError(fmt::format("--api takes driver, runtime or both, not '{}'", api_));
    if (settings_.events && settings_.histogram != Measure::none)
        throw UsageError("choose lines (-e) or histograms (-H)");
    if (options.user_stacks && settings_.histogram != Measure::none)
        throw UsageError("a histogram has no stacks: leave out -U or -H");
    if (settings_.histogram == Measure::none && (options.per_process || options.per_thread))
        throw UsageError("-P and -L are for histograms (-H); for tables use --by pid or --by thread");
    if (options.failed_only && settings_.histogram == Measure::gap)
        throw UsageError("a gap has no result: leave out -x");
    check_sort(settings_.sort);

    settings_.driver = api_ != "runtime";
    settings_.runtime = api_ != "driver";
    settings_.latency |= settings_.histogram == Measure::latency;
    failed_only_ = options.failed_only;
    View& view = settings_.view;
    if (by_)
        view.parse(*by_);
    view.who.pid |= options.per_process || options.per_thread;
    view.who.thread |= options.per_thread;
    view.who.owner = options.extra_columns;
    view.stack = options.user_stacks && !settings_.events;
    view.who.pid |= view.stack;
    if (!by_ && settings_.histogram == Measure::none)
        view.kernel = true;
    view.layer = api_ == "both";
    view.result = failed_only_;
    options_ = options;
}

std::string CudaLaunch::traced() const
{
    return fmt::format("{}kernel launches{}", failed_only_ ? "failed " : "",
                       settings_.runtime ? settings_.driver ? " (driver and runtime)" : " (runtime)" : "");
}

std::vector<Probe> CudaLaunch::probes() const
{
    std::vector<Probe> all;
    // The runtime's launches are needed in any case: counted, or marked to learn names.
    append(all, Library::runtime, launch_kinds);
    for (Library library : {Library::driver, Library::runtime}) {
        if (library == Library::driver && settings_.driver)
            append(all, library, launch_kinds);
        append(all, library, state_kinds);
        append(all, library, note_kinds);
        if (settings_.view.device)
            append(all, library, device_kinds);
    }
    return all;
}

std::vector<Hook> CudaLaunch::hooks(std::span<const Probe> probes) const
{
    Hook launch{"launch", needs_returns(), {}, true};
    Hook mark{"mark", false, {}, false};
    Hook state{"state", true, {}, true};
    Hook note{"note", false, {}, true};
    auto contains = [](const auto& kinds, uint8_t kind) { return std::ranges::find(kinds, kind) != std::end(kinds); };
    for (unsigned i = 0; i < probes.size(); i++) {
        const uint8_t kind = probes[i].row.kind;
        if (contains(launch_kinds, kind))
            (probes[i].library == Library::driver || settings_.runtime ? launch : mark).probes.push_back(i);
        else
            (contains(note_kinds, kind) ? note : state).probes.push_back(i);
    }
    return {launch, mark, state, note};
}

bpf_object* CudaLaunch::open()
{
    skeleton_ = open_skeleton<cudalaunch_bpf>();
    return skeleton_->obj;
}

void CudaLaunch::configure(const Options& options, std::span<const Probe> probes, const Filters& filters)
{
    auto& data = *skeleton_->rodata;
    configure_shared(data, options, probes, filters);
    const View& view = settings_.view;
    const bool shapes = settings_.histogram == Measure::grid || settings_.histogram == Measure::block;
    data.per_kernel = view.kernel || settings_.events;
    data.per_thread = view.who.thread;
    data.per_cgroup = view.who.by_owner() || settings_.events;
    data.per_stream = view.stream || settings_.events;
    data.per_device = view.device;
    data.per_stack = options.user_stacks;
    data.per_shape = shapes || (view.kernel && settings_.histogram == Measure::none && !view.stack) || settings_.events;
    data.emit_events = settings_.events;
    data.need_return = needs_returns();
    data.only_failed = failed_only_;
    data.measure_gap = settings_.histogram == Measure::gap;
    data.measure_latency = settings_.latency;
    data.duration_unit_ns = settings_.histogram == Measure::none ? 1 : options.unit_ns();
    data.count_runtime = settings_.runtime;

    const bool finer = view.stream || view.who.thread || view.who.by_owner() || options.user_stacks;
    const size_t key_bytes = finer                                  ? sizeof(launch_key)
                             : data.need_return || data.measure_gap ? offsetof(launch_key, stream)
                                                                    : offsetof(launch_key, result);
    bpf_map__set_key_size(skeleton_->maps.launches, static_cast<uint32_t>(key_bytes));
    const size_t row_bytes = key_bytes + sizeof(launch_stats) * static_cast<size_t>(libbpf_num_possible_cpus());
    const size_t rows =
        options.table_rows ? options.table_rows : std::clamp<size_t>(table_bytes / row_bytes, 4096, 16384);
    bpf_map__set_max_entries(skeleton_->maps.launches, static_cast<uint32_t>(rows));
    if (!options.user_stacks)
        bpf_map__set_max_entries(skeleton_->maps.stacks, 1);
}

void CudaLaunch::load()
{
    if (int error = cudalaunch_bpf::load(skeleton_.get()))
        throw Error("the kernel refused the BPF programs: " + errno_text(-error),
                    "run it again with -vv for the reason");
    table_.emplace(bpf_map__fd(skeleton_->maps.launches));
    processes_.emplace(bpf_map__fd(skeleton_->maps.processes), options_.host_root);
    lines_.emplace(options_, settings_, *processes_);
}

void CudaLaunch::record(Output& output, const void* data, size_t size)
{
    uint32_t type = 0;
    memcpy(&type, data, sizeof(type));
    if (type == RECORD_NAME && size >= sizeof(name_record))
        names_.learn(*static_cast<const name_record*>(data), size);
    else if (type == RECORD_PROCESS && size >= sizeof(process_record))
        processes_->learn(*static_cast<const process_record*>(data));
    else if (type == RECORD_LAUNCH && size >= sizeof(launch_event))
        print_event(output, *static_cast<const launch_event*>(data));
    else if (type == RECORD_SPILL && size >= sizeof(launch_event))
        table_->add(*static_cast<const launch_event*>(data));
}

void CudaLaunch::print_event(Output& output, const launch_event& event)
{
    const launch_key& key = event.key;
    GroupKey what;
    what.kind = key.kind;
    what.handle = key.func;
    if (key.kind != KIND_GRAPH_LAUNCH)
        what.kernel = names_.name(key.image, key.func).value_or("");
    if (what.kernel.empty() && key.kind == KIND_LAUNCH && key.layer == LAYER_DRIVER)
        unnamed_.emplace(key.image, key.func);
    lines_->print(output, event, what,
                  options_.user_stacks ? frames(key.image, key.stack, key.caller) : std::vector<std::string>());
}

// Once a second: names are looked up while the processes live.
bool CudaLaunch::tick()
{
    retire_processes();
    collect();
    return naming_.tick(unnamed_.size());
}

void CudaLaunch::collect()
{
    if (settings_.events) {
        std::erase_if(unnamed_, [&](const auto& item) { return names_.name(item.first, item.second).has_value(); });
        return;
    }
    for (LaunchDelta& delta : table_->take()) {
        processes_->info(delta.key.image);
        if (settings_.view.stack)
            frames(delta.key.image, delta.key.stack, delta.key.caller);
        if (delta.key.func && delta.key.kind == KIND_LAUNCH) {
            if (names_.name(delta.key.image, delta.key.func))
                unnamed_.erase({delta.key.image, delta.key.func});
            else if (delta.key.layer == LAYER_DRIVER)
                unnamed_.emplace(delta.key.image, delta.key.func);
        }
        pending_.push_back(delta);
    }
}

void CudaLaunch::exited(pid_t pid)
{
    leaving_.insert(static_cast<uint32_t>(pid));
}

// Rows of processes that have ended leave the kernel with the next collect(); names and labels stay until printed.
void CudaLaunch::retire_processes()
{
    for (const ImageId& image : processes_->gone_of(leaving_)) {
        table_->retire(image);
        gone_.insert(image);
        std::erase_if(unnamed_, [&](const auto& item) { return item.first == image; });
    }
    if (settings_.events)
        forget_processes();
}

void CudaLaunch::forget_processes()
{
    for (const ImageId& image : gone_) {
        names_.forget(image);
        symbols_.forget(image);
    }
    processes_->forget(gone_);
    if (!gone_.empty())
        for (const bpf_map* map : {skeleton_->maps.captures, skeleton_->maps.contexts})
            erase_images(bpf_map__fd(map), [this](const image& image) { return gone_.contains(image); });
    gone_.clear();
}

void CudaLaunch::report(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (settings_.events)
        return;
    collect();
    processes_->refresh();
    LaunchGroups groups(settings_.view, names_, *processes_);
    for (const LaunchDelta& delta : pending_)
        groups.add(delta);
    pending_.clear();
    const Context context{options_, settings_, *processes_, static_cast<double>(interval_ns) / 1e9};
    if (settings_.histogram != Measure::none)
        print_histograms(output, groups, context, wall_ns);
    else
        print_groups(output, groups, context, wall_ns, [this](const GroupKey& key, const Group& group) {
            return settings_.view.stack ? frames(*group.who.images.begin(), key.stack, key.caller)
                                        : std::vector<std::string>();
        });
    forget_processes();
}

std::vector<std::string> CudaLaunch::frames(const ImageId& image, int32_t stack, uint64_t caller)
{
    // The caller, then what frame pointers lead to: the first entry is the probed function itself.
    std::vector<uint64_t> addresses{caller};
    uint64_t walked[127]{};
    if (stack >= 0 && bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.stacks), &stack, walked) == 0)
        for (size_t i = 1; i < std::size(walked) && walked[i]; i++)
            addresses.push_back(walked[i]);
    return symbols_.frames(image, addresses);
}

} // namespace
} // namespace gpusnoop

int main(int argc, char** argv)
{
    gpusnoop::CudaLaunch tool;
    return gpusnoop::run_tool(argc, argv, tool);
}
