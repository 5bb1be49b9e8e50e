// SPDX-License-Identifier: Apache-2.0
// cudamemcpy: copies by process and direction, with their bytes, sizes, latency and failures.
#include "run/call_tool.hpp"
#include "run/command_line.hpp"
#include "tools/cudamemcpy/columns.hpp"
#include "tools/tools.hpp"

#include "cudamemcpy.skel.h" // must follow the headers of its types

#include <optional>
#include <utility>

namespace gpusnoop::cudamemcpy {
namespace {

constexpr ToolSpec about{
    .name = "cudamemcpy",
    .summary = "Counts CUDA copies, sets and prefetches by process and direction: bytes, sizes, latency, stacks.",
    .examples = "  cudamemcpy                  # copies of all processes by direction, until Ctrl-C\n"
                "  cudamemcpy 1                # a table every second\n"
                "  cudamemcpy -l -p 1234       # with the time of the calls on the host\n"
                "  cudamemcpy --by pod,kind 5  # copies of each pod\n"
                "  cudamemcpy --by memory      # from pinned or pageable memory?\n"
                "  cudamemcpy -H size          # how small the copies are\n"
                "  cudamemcpy -H rate -P       # how fast synchronous copies are, for each process\n"
                "  cudamemcpy -e -c pod:NS/NAME    # one line per copy of a pod\n"
                "  cudamemcpy -U -d 10         # call stacks that copy most, over 10 seconds\n"
                "  cudamemcpy -x               # only copies that fail, with the error\n"
                "  cudamemcpy --json 1         # one JSON object per row and second\n",
    .open = BpfObject::open<cudamemcpy_bpf>,
};

class CudaMemcpy : public CallTool {
public:
    CudaMemcpy();

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;

private:
    cudamemcpy_bpf& skeleton() const { return bpf_.as<cudamemcpy_bpf>(); }
    std::vector<Program> programs() const;

    Settings settings_;
};

CudaMemcpy::CudaMemcpy() : CallTool(about, settings_)
{
    settings_.sort = "bytes";
    line_fields_ = line_fields();
    add_call_options("kind, memory, form, ", "pid,kind", "size, latency or rate (of synchronous copies)");
    command_line().flag("-l,--latency", "measure how long each call takes on the host, and count errors",
                        settings_.latency);
    add_ceiling();
}

RunPlan CudaMemcpy::plan()
{
    RunPlan plan = begin_plan();
    validate_options(settings_, options_);
    plan.traced = traced("copies");
    plan.noun = traced("copy");
    if (settings_.latency)
        plan.traced += " (the latency of an asynchronous one is the time to submit it)";
    plan.programs = programs();
    return finish_plan(std::move(plan));
}

std::vector<Program> CudaMemcpy::programs() const
{
    constexpr std::string_view no_state = "captured copies count as executed, and devices are unknown";
    std::vector<Program> all{
        {"memory", Layers::driver, memory_calls, true,
         "pinned memory is unknown, and so are directions that the copy function does not give"},
        {"copy", counted(), copy_calls, follows_calls(), "", true, !follows_calls()},
        {"batch", counted(), batch_calls, follows_calls(), "copies in batches are not counted", true, !follows_calls()},
        {"state", Layers::driver, capture_calls, true, no_state},
        {"life", Layers::driver, stream_calls, true, stale_streams},
    };
    if (settings_.view.device) {
        all.push_back({"state", Layers::both, device_calls, true, no_state});
        all.push_back({"life", Layers::driver, context_ends, true, stale_devices});
    }
    // Return probes on runtime calls show which driver calls a runtime call has made.
    if (counted() == Layers::both && !follows_calls())
        for (const CallSet& calls : {copy_calls, batch_calls})
            all.push_back({"leave", Layers::runtime, calls, true});
    return all;
}

void CudaMemcpy::configure(const Filters& filters)
{
    CallTool::configure(filters);
    auto& data = *skeleton().rodata;
    data.per_memory = settings_.memory || settings_.events;
    data.per_size = settings_.histogram_of == Measure::size;
    data.measure_rate = settings_.histogram_of == Measure::rate;
    if (data.measure_rate || data.per_size)
        data.duration_unit_ns = 1;
}

void CudaMemcpy::print(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (!shows_rows_)
        return;
    CopyGroups groups(settings_, processes());
    for (const CallDelta& delta : calls())
        groups.add(delta);
    print_groups(output, groups, {call_context(settings_, interval_ns)}, wall_ns);
}

} // namespace
} // namespace gpusnoop::cudamemcpy

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_cudamemcpy()
{
    return std::make_unique<cudamemcpy::CudaMemcpy>();
}
