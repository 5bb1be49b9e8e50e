// SPDX-License-Identifier: Apache-2.0
// gpualloc: shows the GPU memory that each process holds, allocates and frees: leaks, churn and failures.
#include "base/clock.hpp"
#include "gpu/nvml_figures.hpp"
#include "rows/held_table.hpp"
#include "run/call_tool.hpp"
#include "run/command_line.hpp"
#include "tools/gpualloc/columns.hpp"
#include "tools/gpualloc/lines.hpp"
#include "tools/tools.hpp"

#include "gpualloc.skel.h" // must follow the headers of its types

#include <optional>
#include <utility>

namespace gpusnoop::gpualloc {
namespace {

constexpr ToolSpec about{
    .name = "gpualloc",
    .summary = "Shows GPU memory held by process, kind, pod or call stack: leaks, churn and failures.",
    .examples = "  gpualloc 5                  # memory of each process, every 5 seconds\n"
                "  gpualloc --by pod 5         # memory of each pod\n"
                "  gpualloc --by pid,kind      # device, pool, vmm, managed, pinned ... separately\n"
                "  gpualloc --leaks -o 60 10   # allocations older than a minute by call stack, every 10 seconds\n"
                "  gpualloc --exited           # memory that processes still hold when they exit\n"
                "  gpualloc -x -c pod:NS/NAME  # calls of a pod that fail, with the error and the size\n"
                "  gpualloc -e -p 1234         # one line per allocation and free\n"
                "  gpualloc -H size            # how large allocations are; also latency, lifetime\n"
                "  gpualloc --by stack -d 10   # call stacks that hold most memory\n"
                "  gpualloc --json 1           # one JSON object per row and second\n",
    .open = BpfObject::open<gpualloc_bpf>,
};

class GpuAlloc : public CallTool {
public:
    GpuAlloc();

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;

private:
    gpualloc_bpf& skeleton() const { return bpf_.as<gpualloc_bpf>(); }
    void print_rows(Output& output, uint64_t wall_ns, uint64_t interval_ns);
    Frames stack_of(const LeakKey& key) { return frames(key.image, key.stack, key.caller); }

    Settings settings_;
    std::optional<NvmlFigures> nvml_;
};

GpuAlloc::GpuAlloc() : CallTool(about, settings_)
{
    settings_.sort = "live_bytes";
    line_fields_ = line_fields();
    add_call_options("kind, size, stack, ", "pid", "size, latency or lifetime", false);
    CommandLine& line = command_line();
    line.flag("--leaks", "memory that was not freed, by call stack: bytes, count, greatest age", settings_.leaks);
    line.text("-o,--older", "AGE", "with --leaks: only allocations of at least this age in seconds (or 5m, 2h)",
              [&s = settings_](const std::string& text) {
                  using namespace std::chrono_literals;
                  s.older_than_ns = static_cast<uint64_t>(time_argument("an age (-o)", text, "s", 0ns, 87600h).count());
              });
    line.flag("--exited", "for each process that exits: the memory it still holds, by call stack", settings_.exited);
    line.number("--live-entries", "N", "allocations that can be tracked at once (1000000)", settings_.live_entries,
                {1024, 1 << 26});
    line.text("--nvml", "FILE", "NVML library to use (libnvidia-ml.so.1), or off", settings_.nvml_library);
}

RunPlan GpuAlloc::plan()
{
    RunPlan plan = begin_plan();
    validate_options(settings_, options_);
    constexpr std::string_view no_state = "captured calls count as executed, and devices are unknown";
    plan.traced = traced("allocations and frees");
    plan.noun = settings_.exited  ? "end of a process that allocated"
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
        {"release", Layers::driver, context_ends, true},
        {"state", Layers::driver, capture_calls, true, no_state},
        {"life", Layers::driver, stream_calls, true, stale_streams},
        {"state", Layers::both, device_calls, true, no_state},
    };
    return finish_plan(std::move(plan));
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
    if (settings_.rows() && shows_nvml(settings_, options_))
        nvml_.emplace(settings_.nvml_library, NvmlQuestions{.devices = false, .interval_ns = 0});
}

// With --exited, prints the processes that exited since the last tick, before their data is deleted.
bool GpuAlloc::tick(Output& output)
{
    CallTool::tick(output);
    if (settings_.exited)
        for (const ImageId& image : exited())
            print_exit(output, image, holdings_, processes(), clock_ns(CLOCK_REALTIME),
                       [this](const LeakKey& key) { return stack_of(key); });
    return false;
}

void GpuAlloc::print(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (settings_.exited) {
        leaving_.merge(processes().pids()); // checks processes whose exit event is not read yet, too
        tick(output);
    } else if (settings_.leaks) {
        print_leaks(output, held_->leaks(holdings_, clock_ns(CLOCK_MONOTONIC), settings_.older_than_ns), options_,
                    processes(), wall_ns, static_cast<double>(interval_ns) / 1e9,
                    [this](const LeakKey& key) { return stack_of(key); });
    } else if (shows_rows_) {
        print_rows(output, wall_ns, interval_ns);
    }
}

void GpuAlloc::print_rows(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    AllocationGroups groups(settings_, processes());
    for (const CallDelta& delta : calls())
        groups.add(delta);
    if (settings_.rows() && !options_.failed_only) {
        groups.add_held(holdings_, exited());
        groups.add_peaks(bpf_map__fd(skeleton().maps.held_bytes));
        if (nvml_)
            groups.add_nvml(*nvml_);
    }
    print_groups(output, groups, {call_context(settings_, interval_ns), nvml_ && nvml_->available()}, wall_ns);
}

} // namespace
} // namespace gpusnoop::gpualloc

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_gpualloc()
{
    return std::make_unique<gpualloc::GpuAlloc>();
}
