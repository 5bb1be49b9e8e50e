// SPDX-License-Identifier: Apache-2.0
// gpualloc: who holds the memory, who allocates and frees it again and again, and who never gives it back.
#include "base/clock.hpp"
#include "gpu/nvml_figures.hpp"
#include "rows/call_fields.hpp"
#include "rows/held_table.hpp"
#include "run/call_tool.hpp"
#include "tools/gpualloc/columns.hpp"
#include "tools/gpualloc/lines.hpp"
#include "tools/gpualloc/options.hpp"
#include "tools/tools.hpp"

#include "bpf/shared/record.h"
#include "gpualloc.skel.h" // after the types that it mentions

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop::gpualloc {
namespace {

constexpr ToolSpec about{
    .name = "gpualloc",
    .summary = "Shows who holds GPU memory, by process, kind, pod or call stack; what leaks, and what fails.",
    .examples = "  gpualloc 5                  # what each process holds, every 5 seconds\n"
                "  gpualloc --by pod 5         # which pod holds it\n"
                "  gpualloc --by pid,kind      # device, pool, vmm, managed, pinned ... separately\n"
                "  gpualloc --leaks -o 60 10   # allocations older than a minute by call stack, every 10 seconds\n"
                "  gpualloc --exited           # what processes still hold when they end\n"
                "  gpualloc -x -c pod:NS/NAME  # calls of a pod that fail, with the error and the size\n"
                "  gpualloc -e -p 1234         # one line per allocation and free\n"
                "  gpualloc -H size            # how large allocations are; also latency, lifetime\n"
                "  gpualloc --by stack -d 10   # call stacks that hold most\n"
                "  gpualloc --json 1           # one JSON object per row and second\n",
    .open = BpfObject::open<gpualloc_bpf>,
};

class GpuAlloc : public CallTool {
public:
    GpuAlloc() : CallTool(about, settings_) {}

    void add_options(CommandLine& line) override;
    void configure(const Filters& filters) override;
    void load() override;
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    bool tick(Output& output) override;

private:
    gpualloc_bpf& skeleton() const { return bpf_.as<gpualloc_bpf>(); }
    void validate(RunPlan& plan) override;
    std::vector<const char*> tables_of(std::span<const ImageId> gone) override;
    void on_delta(const CallDelta& delta) override { holdings_.add(delta); }
    void collected() override { holdings_.settle(); }
    bool learn(uint32_t type, const void* data, size_t size) override;
    void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) override;
    void print_event(Output& output, const call_event& event) override
    {
        lines_->print(output, {event}, event_frames(event));
    }
    void ended(Output& output, const std::set<ImageId>& images) override;
    void forget(const std::set<ImageId>& images) override;

    Frames stack_of(const LeakKey& key) { return frames(key.image, key.stack, key.caller); }

    Settings settings_;
    Holdings holdings_;
    std::optional<HeldTable> held_;
    std::optional<NvmlFigures> nvml_;
    std::optional<CallEvents<CallLine, Context>> lines_;
};

void GpuAlloc::add_options(CommandLine& line)
{
    Settings& s = settings_;
    s.sort = "live_bytes";
    add_call_options(line, "kind, size, stack, ", "pid", "size, latency or lifetime", false);
    add_own_options(line, s);
}

void GpuAlloc::validate(RunPlan& plan)
{
    validate_options(settings_, options_);
    constexpr std::string_view no_state = "captured calls count as made, and devices are unknown";
    plan.traced = traced("allocations and frees");
    plan.one = settings_.exited  ? "end of a process that allocated"
               : settings_.leaks ? "unfreed allocation" + at_least(settings_.older_than_ns, "older")
                                 : traced("allocation or free");
    plan.lines |= settings_.exited;
    shows_rows_ = settings_.rows() || settings_.histogram();
    plan.needs_returns = true;
    plan.nvml_library = settings_.nvml_library;
    plan.programs = {
        {"alloc", counted(), alloc_calls, true},
        {"free", counted(), free_calls, true},
        {"handle", counted(), handle_calls, true},
        {"gone", Layers::driver, context_ends, true},
        {"state", Layers::driver, capture_calls, true, no_state},
        {"life", Layers::driver, stream_calls, true, stale_streams},
        {"state", Layers::both, device_calls, true, no_state},
    };
}

void GpuAlloc::configure(const Filters& filters)
{
    CallTool::configure(filters);
    auto& data = *skeleton().rodata;
    const bool sizes = settings_.size || settings_.histogram_of == Measure::size;
    data.need_return = true;
    data.follow = !options_.failed_only;
    data.per_size = sizes;
    data.measure_lifetime = settings_.histogram_of == Measure::lifetime;
    if (sizes)
        data.duration_unit_ns = 1;
    size_held_table(bpf_, options_.failed_only ? 1 : settings_.live_entries);
    holdings_.distinguish(sizes, settings_.view.device);
}

void GpuAlloc::load()
{
    CallTool::load();
    held_.emplace(bpf_map__fd(skeleton().maps.held), bpf_map__fd(skeleton().maps.held_beyond));
    if (settings_.rows() && shows_nvml(settings_, options_))
        nvml_.emplace(settings_.nvml_library, NvmlQuestions{.devices = false, .interval_ns = 0});
    lines_.emplace(line_fields(), Context{{options_, settings_, processes(), 0, probes_}, false});
}

std::vector<const char*> GpuAlloc::tables_of(std::span<const ImageId> gone)
{
    std::vector<const char*> tables = CallTool::tables_of(gone);
    tables.push_back("context_bytes");
    add_held_tables(tables, gone, holdings_, !settings_.events);
    return tables;
}

bool GpuAlloc::tick(Output& output)
{
    held_->make_room(holdings_);
    return CallTool::tick(output);
}

bool GpuAlloc::learn(uint32_t type, const void* data, size_t size)
{
    if ((type != RECORD_REPLACED && type != RECORD_CONTEXT_ENDED) || size < sizeof(holding_record))
        return false;
    holdings_.learn(*static_cast<const holding_record*>(data));
    return true;
}

// Their peaks have been shown.
void GpuAlloc::forget(const std::set<ImageId>& images)
{
    holdings_.forget(images);
    for (const ImageId& id : images) {
        const image image = id;
        bpf_map__delete_elem(skeleton().maps.held_bytes, &image, sizeof(image), 0);
    }
}

void GpuAlloc::report(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (settings_.exited) {
        print_ended(output);
    } else if (settings_.leaks) {
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
        groups.add_peaks(bpf_map__fd(skeleton().maps.held_bytes));
        if (nvml_)
            groups.add_nvml(*nvml_);
    }
    const Context context{{options_, settings_, processes(), seconds, probes_}, nvml_ && nvml_->available()};
    if (settings_.histogram())
        print_histograms(output, groups, context, wall_ns);
    else
        print_groups(output, groups, context, wall_ns,
                     [this](const AllocationKey& key, const AllocationGroup&) { return row_frames(key); });
}

void GpuAlloc::ended(Output& output, const std::set<ImageId>& images)
{
    if (settings_.exited)
        for (const ImageId& image : images)
            print_exit(output, image, holdings_, processes(), clock_ns(CLOCK_REALTIME),
                       [this](const LeakKey& key) { return stack_of(key); });
}

} // namespace
} // namespace gpusnoop::gpualloc

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_gpualloc()
{
    return std::make_unique<gpualloc::GpuAlloc>();
}
