// SPDX-License-Identifier: Apache-2.0
// gpualloc: who holds the memory, who allocates and frees it again and again, and who never gives it back.
#include "call_fields.hpp"
#include "call_tool.hpp"
#include "clock.hpp"
#include "gpualloc_columns.hpp"
#include "gpualloc_lines.hpp"
#include "gpualloc_options.hpp"
#include "held_table.hpp"
#include "nvml_figures.hpp"
#include "skeleton.hpp"

#include "../bpf/attach.h"
#include "../bpf/record.h"
#include "gpualloc.skel.h" // after the types that it mentions

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop::gpualloc {
namespace {

class GpuAlloc : public CallTool {
public:
    GpuAlloc() : CallTool(settings_) {}

    std::string_view name() const override { return "gpualloc"; }
    std::string_view summary() const override
    {
        return "Shows who holds GPU memory, by process, kind, container or call stack: what was allocated and not "
               "given "
               "back, how fast it is churned, what failed, and what leaks.";
    }
    std::string_view examples() const override
    {
        return "  gpualloc 5                  # what each process holds, every 5 seconds\n"
               "  gpualloc --by pod 5         # which pod holds it\n"
               "  gpualloc --by pid,kind      # device, pool, vmm, managed, pinned ... apart\n"
               "  gpualloc --leaks -o 60 10   # allocations older than a minute by call stack, every 10 seconds\n"
               "  gpualloc --exited           # what processes still hold when they end\n"
               "  gpualloc -x -c pod:NS/NAME  # calls of a pod that fail, with the error and the size\n"
               "  gpualloc -e -p 1234         # one line per allocation and free\n"
               "  gpualloc -H size            # how large allocations are; also latency, lifetime\n"
               "  gpualloc --by stack -d 10   # call stacks that hold most\n"
               "  gpualloc --json 1           # one JSON object per row and second\n";
    }

    void add_options(CLI::App& app) override;
    std::string traced() const override;
    bool needs_returns() const override { return true; }
    std::vector<Hook> hooks(std::span<const Probe> probes) const override;
    bpf_object* open() override;
    void configure(const Options& options, std::span<const Probe> probes, const Filters& filters) override;
    void load() override;
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    bool tick(Output& output) override;
    void attached_again() override { skeleton_->bss->attach_generation = COOKIE_SECOND; }

private:
    bool shows_rows() const override { return settings_.rows() || settings_.histogram(); }
    void settle() override { settle_options(settings_, options_); }
    std::vector<Probe> choose_probes() const override;
    int load_skeleton() override { return gpualloc_bpf::load(skeleton_.get()); }
    bpf_object* object() override { return skeleton_->obj; }
    std::vector<const char*> tables_of(std::span<const ImageId> gone) override;
    void look_at(const CallDelta& delta) override { holdings_.add(delta); }
    bool learn(uint32_t type, const void* data, size_t size) override;
    void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) override;
    void print_event(Output& output, const call_event& event) override;
    void ended(Output& output, const std::set<ImageId>& images) override;
    void forget(const std::set<ImageId>& images) override;

    std::vector<std::string> stack_of(const LeakKey& key) { return frames(key.image, key.stack, key.caller); }

    Settings settings_;
    Skeleton<gpualloc_bpf> skeleton_;
    Holdings holdings_;
    std::optional<HeldTable> held_;
    std::optional<NvmlFigures> nvml_;
    std::optional<CallEvents> lines_;
};

void GpuAlloc::add_options(CLI::App& app)
{
    Settings& s = settings_;
    s.sort = "live_bytes";
    add_call_options(app, "kind, size, stack, ", "pid", "size, latency or lifetime");
    add_own_options(app, s);
}

std::string GpuAlloc::traced() const
{
    return fmt::format("{}allocations and frees{}", options_.failed_only ? "failed " : "",
                       settings_.runtime ? settings_.driver ? " (driver and runtime)" : " (runtime)" : "");
}

std::vector<Probe> GpuAlloc::choose_probes() const
{
    std::vector<Probe> all;
    for (Library library : layers())
        for (std::span<const probe_kind> kinds :
             {std::span<const probe_kind>(alloc_kinds), {free_kinds}, {handle_kinds}})
            append_probes(all, library, kinds);
    append_probes(all, Library::driver, capture_kinds);
    append_probes(all, Library::driver, gone_kinds);
    for (Library library : {Library::driver, Library::runtime})
        append_probes(all, library, device_kinds);
    return all;
}

std::vector<Hook> GpuAlloc::hooks(std::span<const Probe> probes) const
{
    Hook state{"state", true, probes_of(probes, capture_kinds), true};
    std::ranges::copy(probes_of(probes, device_kinds), std::back_inserter(state.probes));
    return {{"alloc", true, probes_of(probes, alloc_kinds), true},
            {"free", true, probes_of(probes, free_kinds), true},
            {"handle", true, probes_of(probes, handle_kinds), true},
            {"gone", true, probes_of(probes, gone_kinds), true},
            state};
}

bpf_object* GpuAlloc::open()
{
    skeleton_ = open_skeleton<gpualloc_bpf>();
    return skeleton_->obj;
}

void GpuAlloc::configure(const Options& options, std::span<const Probe> probes, const Filters& filters)
{
    auto& data = *skeleton_->rodata;
    const bool sizes = settings_.size || settings_.histogram_of == Measure::size;
    configure_shared(data, options, filters);
    configure_probes(data, probes, filters);
    configure_calls(data, settings_, options_);
    data.need_return = true;
    data.follow = !options_.failed_only;
    data.per_size = sizes;
    data.measure_lifetime = settings_.histogram_of == Measure::lifetime;
    if (sizes)
        data.duration_unit_ns = 1;
    size_tables(skeleton_->obj);
    bpf_map__set_max_entries(skeleton_->maps.held, options_.failed_only ? 1 : settings_.live_entries);
    holdings_.tell_apart(sizes, settings_.view.device);
}

void GpuAlloc::load()
{
    CallTool::load();
    held_.emplace(bpf_map__fd(skeleton_->maps.held));
    if (settings_.rows() && shows_nvml(settings_, options_))
        nvml_.emplace(settings_.nvml_library, NvmlQuestions{.devices = false, .interval_ns = 0});
    lines_.emplace(options_, settings_, processes(), probes(),
                   std::initializer_list<Column>{
                       {"CALL", "operation", Unit::text, 5},
                       {"KIND", "kind", Unit::text, 10},
                       {"BYTES", "bytes", Unit::bytes, 7},
                       {"ADDRESS", "address", Unit::hex, 14},
                       {"HELD(s)", "lifetime_ns", Unit::seconds, 11},
                   },
                   std::initializer_list<Column>{{"FUNCTION", "", Unit::text, 8, true, false}});
}

std::vector<const char*> GpuAlloc::tables_of(std::span<const ImageId> gone)
{
    std::vector<const char*> tables = CallTool::tables_of(gone);
    tables.push_back("context_bytes");
    collect();
    // To walk through a million entries takes a while: not for those that hold nothing.
    if (settings_.events || std::ranges::any_of(gone, [this](const ImageId& image) { return holdings_.holds(image); }))
        tables.insert(tables.end(), {"held", "physical_handles", "physicals", "mappings"});
    return tables;
}

bool GpuAlloc::tick(Output& output)
{
    // Before the first look at the targets ends, a process may have called without being seen.
    if (!skeleton_->bss->traced_since)
        skeleton_->bss->traced_since = clock_ns(CLOCK_BOOTTIME);
    if (holdings_.room_to_make() > settings_.live_entries / 8) {
        held_->sweep(holdings_);
        holdings_.room_made();
    }
    return CallTool::tick(output);
}

bool GpuAlloc::learn(uint32_t type, const void* data, size_t size)
{
    if ((type != RECORD_REPLACED && type != RECORD_CONTEXT_ENDED) || size < sizeof(holding_record))
        return false;
    collect(); // what was allocated before
    holdings_.learn(*static_cast<const holding_record*>(data));
    return true;
}

// Their peaks have been shown.
void GpuAlloc::forget(const std::set<ImageId>& images)
{
    holdings_.forget(images);
    for (const ImageId& id : images) {
        const image image = id;
        bpf_map__delete_elem(skeleton_->maps.held_bytes, &image, sizeof(image), 0);
    }
}

void GpuAlloc::report(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (settings_.exited) {
        settle_ended(output);
    } else if (settings_.leaks) {
        collect();
        print_leaks(output, held_->leaks(holdings_, clock_ns(CLOCK_MONOTONIC), settings_.older_than_ns), options_,
                    processes(), wall_ns, static_cast<double>(interval_ns) / 1e9,
                    [this](const LeakKey& key) { return stack_of(key); });
    } else {
        CallTool::report(output, wall_ns, interval_ns);
    }
}

void GpuAlloc::print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds)
{
    AllocationGroups groups(settings_, processes());
    for (const CallDelta& delta : calls)
        groups.add(delta);
    if (settings_.rows() && !options_.failed_only) {
        groups.add_held(holdings_, gone());
        groups.add_peaks(bpf_map__fd(skeleton_->maps.held_bytes));
        if (nvml_)
            groups.add_nvml(*nvml_);
    }
    const Context context{{options_, settings_, processes(), seconds, probes()}, nvml_ && nvml_->available()};
    if (settings_.histogram())
        print_histograms(output, groups, context, wall_ns);
    else
        print_groups(output, groups, context, wall_ns, [this](const AllocationKey& key, const AllocationGroup& group) {
            return row_frames(key, group.who);
        });
}

void GpuAlloc::ended(Output& output, const std::set<ImageId>& images)
{
    if (settings_.exited)
        for (const ImageId& image : images)
            print_exit(output, image, holdings_, processes(), clock_ns(CLOCK_REALTIME),
                       [this](const LeakKey& key) { return stack_of(key); });
}

void GpuAlloc::print_event(Output& output, const call_event& event)
{
    const call_key& key = event.key;
    const memory_call& memory = event.memory;
    const bool unknown = key.memory.holding == HOLDING_NONE;
    lines_->print(output, event,
                  {std::string(operation_name(key.kind)), std::string(holding_name(key.memory.holding)),
                   memory.sized ? Cell(uint64_t{memory.bytes}) : Cell(), uint64_t{memory.address},
                   key.kind == KIND_FREE && !unknown && memory.since_ns ? Cell(uint64_t{memory.since_ns}) : Cell()},
                  {function_name(probes(), key.function)}, event_frames(event));
}

} // namespace
} // namespace gpusnoop::gpualloc

int main(int argc, char** argv)
{
    gpusnoop::gpualloc::GpuAlloc tool;
    return gpusnoop::run_tool(argc, argv, tool);
}
