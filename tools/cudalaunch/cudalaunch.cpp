// SPDX-License-Identifier: Apache-2.0
// cudalaunch: kernel launches by kernel and process, with their sizes, latency and failures.
#include "base/text.hpp"
#include "names/kernel_names.hpp"
#include "names/naming.hpp"
#include "run/call_tool.hpp"
#include "run/command_line.hpp"
#include "run/shared_options.hpp"
#include "tools/cudalaunch/columns.hpp"
#include "tools/tools.hpp"

#include "bpf/shared/record.h"
#include "cudalaunch.skel.h" // must follow the headers of its types

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace gpusnoop::cudalaunch {
namespace {

constexpr ToolSpec about{
    .name = "cudalaunch",
    .summary = "Counts CUDA kernel launches by kernel, process, pod or stream: sizes, latency, failures, stacks.",
    .examples = "  cudalaunch                  # launches of all processes by kernel, until Ctrl-C\n"
                "  cudalaunch 1                # a table every second\n"
                "  cudalaunch --by pid,kernel 5 1   # which process launches what, one report over 5 seconds\n"
                "  cudalaunch -p 1234 -l       # with the time of the launch call on the host\n"
                "  cudalaunch --by pod 5       # launches of each pod\n"
                "  cudalaunch -c pod:NS/NAME   # the kernels of one pod; also a container's id or name, or a cgroup\n"
                "  cudalaunch -x               # only launches that fail, with the error\n"
                "  cudalaunch -H latency -P    # latency histogram for each process\n"
                "  cudalaunch -e -p 1234       # one line per launch\n"
                "  cudalaunch -U -d 10         # call stacks that launch most, over 10 seconds\n"
                "  cudalaunch --json 1         # one JSON object per row and second\n",
    .open = BpfObject::open<cudalaunch_bpf>,
};

class CudaLaunch : public CallTool {
public:
    CudaLaunch();

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void record(Output& output, const RingRecord& record) override;
    void delta(const CallDelta& delta) override { unnamed_.note(*names_, delta.key); }
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    void forget(const std::set<ImageId>& images) override
    {
        std::ranges::for_each(images, [this](const ImageId& image) {
            unnamed_.forget(image);
            names_->forget(image);
        });
    }

private:
    cudalaunch_bpf& skeleton() const { return bpf_.as<cudalaunch_bpf>(); }
    std::vector<Program> programs() const;
    bool name_kernel(CallLine& line);

    Settings settings_;
    std::optional<KernelNames> names_;
    NamingSchedule naming_;
    UnnamedKernels unnamed_;
};

CudaLaunch::CudaLaunch() : CallTool(about, settings_)
{
    settings_.sort = "launches";
    line_fields_ = line_fields();
    fill_line_ = [this](CallLine& line) { return name_kernel(line); };
    add_call_options("kernel, ", "kernel", "latency, grid, block (threads) or gap (between launches)");
    CommandLine& line = command_line();
    line.flag("-l,--latency", "measure how long each launch call takes on the host, and count errors",
              settings_.latency);
    line.text("--graphs", "HOW", "how to count kernels that graphs launch: both, expand or count (both)",
              settings_.graphs);
    add_name_options(line, settings_.names);
    add_ceiling();
}

RunPlan CudaLaunch::plan()
{
    RunPlan plan = begin_plan();
    validate_options(settings_, options_);
    names_.emplace(settings_.names.cache_folder(), &wait_budget_);
    std::ranges::for_each(options_.pids, [this](pid_t pid) { names_->expect(pid); });
    plan.replay->names = settings_.names.form;
    plan.hooks.names_lost = [this] { return names_->lost_since_last(); };
    plan.hooks.before_last_report = [this](std::chrono::milliseconds patience) { names_->finish(patience); };
    plan.traced = traced("kernel launches");
    plan.noun = traced("launch");
    plan.programs = programs();
    return finish_plan(std::move(plan));
}

std::vector<Program> CudaLaunch::programs() const
{
    constexpr std::string_view unnamed = "devices are unknown, and no kernel names are learned from lookups by name";
    // The consequence if probes of the driver API fail. Captures and graphs are traced there, even if launches are
    // counted in the runtime API.
    constexpr std::string_view uncaptured = "captured kernels count as launched";
    std::vector<Program> all{
        {"launch", counted(), launch_calls, follows_calls(), "", true, !follows_calls()},
        {"often", counted(), often_launched, follows_calls(), slower_launches, true, !follows_calls(), "launch"},
        {"state", Layers::both, lookup_calls, true, unnamed},
        {"note", Layers::both, note_calls, false,
         "no kernel names are learned from registrations, and block sizes of legacy launches are unknown"},
        {"follow", Layers::driver, capture_calls, true, uncaptured},
        {"life", Layers::driver, stream_calls, true, stale_streams},
    };
    // Launch functions of the runtime are always probed: to count launches, or else to learn kernel names.
    if (!settings_.runtime)
        all.push_back(
            {"mark", Layers::runtime, launch_calls, false, "no kernel names are learned from launches", false});
    if (settings_.view.device) {
        all.push_back({"state", Layers::both, device_calls, true, unnamed});
        all.push_back({"life", Layers::driver, context_ends, true, stale_devices});
    }
    if (settings_.follows_graphs()) {
        all.push_back({"follow", Layers::driver, graph_calls, true, uncaptured});
        all.push_back({"event", Layers::driver, event_calls, false, uncaptured});
    }
    return all;
}

void CudaLaunch::configure(const Filters& filters)
{
    CallTool::configure(filters);
    auto& data = *skeleton().rodata;
    const Measure measure = settings_.histogram_of;
    const bool shapes = measure == Measure::grid || measure == Measure::block;
    bpf_map__set_max_entries(skeleton().maps.unsent_names, KernelNames::unsent_max);
    data.often_launched = row_number(probes_, often_launched);
    data.per_kernel = settings_.kernel || settings_.events;
    data.per_shape =
        shapes || (settings_.kernel && measure == Measure::none && !settings_.view.stack) || settings_.events;
    data.measure_gap = measure == Measure::gap;
    data.follow_graphs = settings_.follows_graphs();
}

void CudaLaunch::load()
{
    CallTool::load();
    names_->read_unsent_from(bpf_map__fd(skeleton().maps.unsent_names));
}

void CudaLaunch::record(Output& output, const RingRecord& record)
{
    if (const auto* name = record.as<name_record>(RECORD_NAME))
        names_->learn(*name, record.size);
    else
        CallTool::record(output, record);
}

bool CudaLaunch::name_kernel(CallLine& line)
{
    const call_key& key = line.call.key;
    if (key.kind != KIND_GRAPH_LAUNCH)
        line.kernel = names_->name(key.image, key.subject).value_or(KernelName());
    if (line.kernel.text.empty() && key.kind == KIND_LAUNCH && key.layer != LAYER_RUNTIME)
        unnamed_.add(key.image, key.subject);
    return true;
}

// Called once a second, so that names are looked up while the processes are running.
bool CudaLaunch::tick(Output& output)
{
    CallTool::tick(output);
    std::ranges::for_each(exited(), [this](const ImageId& image) { unnamed_.forget(image); });
    names_->tick();
    if (settings_.events)
        unnamed_.retry(*names_);
    return naming_.tick(unnamed_.size());
}

void CudaLaunch::print(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (!shows_rows_)
        return;
    LaunchGroups groups(settings_, *names_, processes());
    for (const CallDelta& delta : calls())
        groups.add(delta);
    print_groups(output, groups, {call_context(settings_, interval_ns)}, wall_ns);
}

} // namespace
} // namespace gpusnoop::cudalaunch

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_cudalaunch()
{
    return std::make_unique<cudalaunch::CudaLaunch>();
}
