// SPDX-License-Identifier: Apache-2.0
// cudalaunch: who launches which kernels, how often, how large, how slowly, and which launches fail.
#include "call_tool.hpp"
#include "cudalaunch_columns.hpp"
#include "kernel_names.hpp"
#include "naming.hpp"
#include "scan_cache.hpp"
#include "skeleton.hpp"
#include "text.hpp"

#include "../bpf/attach.h"
#include "../bpf/record.h"
#include "cudalaunch.skel.h" // after the types that it mentions

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>

namespace gpusnoop::cudalaunch {
namespace {

class CudaLaunch : public CallTool {
public:
    CudaLaunch() : CallTool(settings_) {}

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
    std::string traced() const override;
    std::vector<Hook> hooks(std::span<const Probe> probes) const override;
    bpf_object* open() override;
    void configure(const Options& options, std::span<const Probe> probes, const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void armed(bool on) override { skeleton_->bss->naming = on; }
    void attached_again() override { skeleton_->bss->attach_generation = COOKIE_SECOND; }

private:
    void settle() override;
    std::vector<Probe> choose_probes() const override;
    int load_skeleton() override { return cudalaunch_bpf::load(skeleton_.get()); }
    bpf_object* object() override { return skeleton_->obj; }
    std::vector<const char*> tables_of(std::span<const ImageId> gone) override;
    bool learn(uint32_t type, const void* data, size_t size) override;
    void look_at(const CallDelta& delta) override;
    void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) override;
    void print_event(Output& output, const call_event& event) override;
    void retired(const ImageId& image) override;
    void forget(const std::set<ImageId>& images) override
    {
        std::ranges::for_each(images, [this](const ImageId& image) { names_->forget(image); });
    }

    Settings settings_;
    Skeleton<cudalaunch_bpf> skeleton_;
    std::optional<KernelNames> names_;
    NamingSchedule naming_;
    std::set<std::pair<ImageId, uint64_t>> unnamed_;
    std::optional<CallEvents> lines_;
};

void CudaLaunch::add_options(CLI::App& app)
{
    settings_.sort = "launches";
    add_call_options(app, "kernel, ", "kernel", "latency, grid, block (threads) or gap (between launches)");
    app.add_flag("-l,--latency", settings_.latency, "measure the host side of the launch call, and count errors");
    app.add_option(
           "--graphs", settings_.graphs,
           "kernels behind graph launches: both (beside the launches), expand (among them) or count (not at all)")
        ->type_name("HOW");
    app.add_option("--names", settings_.names, "kernel names in tables: short, full or base (short)")->type_name("HOW");
    app.add_flag("--no-cache", settings_.no_cache, "neither read nor keep on disk what libraries register");
}

void CudaLaunch::settle()
{
    Settings& s = settings_;
    constexpr std::pair<std::string_view, Measure> measures[] = {{"", Measure::none},
                                                                 {"latency", Measure::latency},
                                                                 {"grid", Measure::grid},
                                                                 {"block", Measure::block},
                                                                 {"gap", Measure::gap}};
    auto measure = std::ranges::find(measures, s.measure, &std::pair<std::string_view, Measure>::first);
    if (measure == std::end(measures))
        throw UsageError(fmt::format("-H takes latency, grid, block or gap, not '{}'", s.measure));
    s.histogram_of = measure->second;
    if (options_.failed_only && s.histogram_of == Measure::gap)
        throw UsageError("a gap has no result: leave out -x");
    if (s.graphs != "both" && s.graphs != "expand" && s.graphs != "count")
        throw UsageError(fmt::format("--graphs takes both, expand or count, not '{}'", s.graphs));
    if (s.names != "full" && s.names != "short" && s.names != "base")
        throw UsageError(fmt::format("--names takes short, full or base, not '{}'", s.names));
    names_.emplace(s.no_cache ? "" : ScanCache::default_folder());
    check_sort(s.sort);
    s.latency |= s.histogram_of == Measure::latency;
    const Dimension kernel[] = {{"kernel", &s.kernel}};
    if (s.by)
        parse_by(*s.by, s.view, kernel);
    else
        s.kernel = !s.histogram();
}

std::string CudaLaunch::traced() const
{
    return fmt::format("{}kernel launches{}", options_.failed_only ? "failed " : "",
                       settings_.runtime ? settings_.driver ? " (driver and runtime)" : " (runtime)" : "");
}

std::vector<Probe> CudaLaunch::choose_probes() const
{
    std::vector<Probe> all;
    // The runtime's launches are needed in any case: counted, or marked to learn names.
    append_probes(all, Library::runtime, launch_kinds);
    for (Library library : {Library::driver, Library::runtime}) {
        if (library == Library::driver && settings_.driver)
            append_probes(all, library, launch_kinds);
        append_probes(all, library, lookup_kinds);
        append_probes(all, library, note_kinds);
        if (settings_.view.device)
            append_probes(all, library, device_kinds);
    }
    append_probes(all, Library::driver, capture_kinds);
    if (settings_.follows_graphs()) {
        append_probes(all, Library::driver, graph_kinds);
        append_probes(all, Library::driver, event_kinds);
    }
    return all;
}

std::vector<Hook> CudaLaunch::hooks(std::span<const Probe> probes) const
{
    Hook launch{"launch", needs_returns(), {}, true};
    Hook mark{"mark", false, {}, false};
    Hook state{"state", true, probes_of(probes, lookup_kinds), true};
    Hook note{"note", false, probes_of(probes, note_kinds), true};
    std::ranges::copy(probes_of(probes, device_kinds), std::back_inserter(state.probes));
    for (unsigned i : probes_of(probes, launch_kinds))
        (probes[i].library == Library::driver || settings_.runtime ? launch : mark).probes.push_back(i);
    // Captures and graphs are the driver's, whatever layer is counted.
    Hook follow{"follow", true, probes_of(probes, capture_kinds), true};
    std::ranges::copy(probes_of(probes, graph_kinds), std::back_inserter(follow.probes));
    Hook event{"event", false, probes_of(probes, event_kinds), true};
    return {launch, mark, state, note, follow, event};
}

bpf_object* CudaLaunch::open()
{
    skeleton_ = open_skeleton<cudalaunch_bpf>();
    return skeleton_->obj;
}

void CudaLaunch::configure(const Options& options, std::span<const Probe> probes, const Filters& filters)
{
    auto& data = *skeleton_->rodata;
    configure_shared(data, options, filters);
    configure_probes(data, probes, filters);
    configure_calls(data, settings_, options);
    const Measure of = settings_.histogram_of;
    const bool shapes = of == Measure::grid || of == Measure::block;
    data.per_kernel = settings_.kernel || settings_.events;
    data.per_shape = shapes || (settings_.kernel && of == Measure::none && !settings_.view.stack) || settings_.events;
    data.measure_gap = of == Measure::gap;
    data.follow_graphs = settings_.follows_graphs();
    size_tables(skeleton_->obj);
}

void CudaLaunch::load()
{
    CallTool::load();
    // A column that this run cannot fill is not there.
    lines_.emplace(options_, settings_, processes(), probes(),
                   std::initializer_list<Column>{
                       {"GRID", "grid", Unit::dim3, 11},
                       {"BLOCK", "block", Unit::dim3, 9},
                       {"SMEM", "shared_memory_bytes", Unit::bytes, 6},
                   },
                   std::initializer_list<Column>{
                       {"", "handle", Unit::hex, 0, false},
                       {"", "kernel", Unit::text, 0, false},
                       {"", "name_source", Unit::text, 0, false},
                       {"KERNEL", "", Unit::text, 6, true, false},
                   });
}

bool CudaLaunch::learn(uint32_t type, const void* data, size_t size)
{
    if (type != RECORD_NAME || size < sizeof(name_record))
        return false;
    names_->learn(*static_cast<const name_record*>(data), size);
    return true;
}

std::vector<const char*> CudaLaunch::tables_of(std::span<const ImageId> gone)
{
    std::vector<const char*> tables = CallTool::tables_of(gone);
    tables.insert(tables.end(), {"graphs", "execs"});
    return tables;
}

void CudaLaunch::print_event(Output& output, const call_event& event)
{
    const call_key& key = event.key;
    LaunchKey what;
    what.kind = key.kind;
    what.handle = key.subject;
    const KernelName known =
        key.kind != KIND_GRAPH_LAUNCH ? names_->name(key.image, key.subject).value_or(KernelName()) : KernelName();
    what.kernel = known.text;
    if (what.kernel.empty() && key.kind == KIND_LAUNCH && key.layer == LAYER_DRIVER)
        unnamed_.emplace(key.image, key.subject);
    const bool shaped = key.kind == KIND_LAUNCH && key.launch.blocks != BUCKET_NONE;
    auto dimensions = [](const __u32(&xyz)[3]) { return Cell(Dim3{xyz[0], xyz[1], xyz[2]}); };
    const std::string name = launch_name(what);
    lines_->print(output, event,
                  {shaped ? dimensions(event.shape.grid) : Cell(),
                   shaped && key.launch.threads != BUCKET_NONE ? dimensions(event.shape.block) : Cell(),
                   shaped ? Cell(uint64_t{event.shape.smem}) : Cell()},
                  {uint64_t{key.subject}, what.kernel.empty() ? Cell() : Cell(what.kernel),
                   what.kernel.empty() ? Cell() : Cell(std::string(source_name(known.source))),
                   key.flags & CALL_RECORDED ? name + " [captured]" : name},
                  event_frames(event));
}

// Once a second: names are looked up while the processes live.
bool CudaLaunch::tick(Output& output)
{
    CallTool::tick(output);
    names_->tick();
    if (settings_.events)
        std::erase_if(unnamed_, [&](const auto& item) { return names_->name(item.first, item.second).has_value(); });
    return naming_.tick(unnamed_.size());
}

void CudaLaunch::look_at(const CallDelta& delta)
{
    const call_key& key = delta.key;
    if (!key.subject || key.kind != KIND_LAUNCH)
        return;
    if (names_->name(key.image, key.subject))
        unnamed_.erase({key.image, key.subject});
    else if (key.layer == LAYER_DRIVER)
        unnamed_.emplace(key.image, key.subject);
}

void CudaLaunch::retired(const ImageId& image)
{
    std::erase_if(unnamed_, [&](const auto& item) { return item.first == image; });
}

void CudaLaunch::print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds)
{
    LaunchGroups groups(settings_, *names_, processes());
    for (const CallDelta& delta : calls)
        groups.add(delta);
    const Context context{{options_, settings_, processes(), seconds, probes()}};
    if (settings_.histogram())
        print_histograms(output, groups, context, wall_ns);
    else
        print_groups(output, groups, context, wall_ns,
                     [this](const LaunchKey& key, const LaunchGroup& group) { return row_frames(key, group.who); });
}

} // namespace
} // namespace gpusnoop::cudalaunch

int main(int argc, char** argv)
{
    gpusnoop::cudalaunch::CudaLaunch tool;
    return gpusnoop::run_tool(argc, argv, tool);
}
