// SPDX-License-Identifier: Apache-2.0
// cudagap: explains why the GPU gets no work, by showing where threads that use CUDA spend their time.
#include "attach/load_plan.hpp"
#include "base/bpf_map.hpp"
#include "base/clock.hpp"
#include "bpf/shared/record.h"
#include "run/command_line.hpp"
#include "run/tool.hpp"
#include "tools/cudagap/kernel.hpp"
#include "tools/cudagap/options.hpp"
#include "tools/cudagap/why.hpp"
#include "tools/tools.hpp"

#include "cudagap.skel.h" // must follow the headers of its types

#include <algorithm>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop::cudagap {
namespace {

using namespace std::chrono_literals;

constexpr ToolSpec about{
    .name = "cudagap",
    .summary = "Shows where threads that use CUDA spend their time: in calls, without a CPU, or blocked, and why.",
    .examples = "  cudagap                     # all processes, until Ctrl-C\n"
                "  cudagap 5                   # a table every 5 seconds\n"
                "  cudagap --by thread 5       # which thread is held up\n"
                "  cudagap --by pod 5          # which pod is held up\n"
                "  cudagap --by thread -s RUNQ%   # which threads wait longest for a CPU\n"
                "  cudagap -H gap              # how long threads pause between launches, and why\n"
                "  cudagap -H gap --by stream  # pauses between launches, per stream\n"
                "  cudagap -e -l 10ms          # a line for each pause of 10 ms or longer\n"
                "  cudagap --why               # after 5 s, explain what holds up each process\n"
                "  cudagap -p 1234 -U          # stacks where its threads block, in the kernel and the program\n"
                "  cudagap --tcp 5             # TCP peers: round trips, retransmits, bytes\n"
                "  cudagap --files 5           # files that threads wait for: how often and how long\n"
                "  cudagap --interrupts 5      # also show time lost to hardirqs and softirqs\n"
                "  cudagap --cheap 5           # no reasons, and no overhead on context switches\n"
                "  cudagap --json 1            # one JSON object per row and second, times in nanoseconds\n",
    .open = BpfObject::open<cudagap_bpf>,
    .explain = explain,
};

// BPF programs that collect the names of the kernels before and after a gap.
constexpr Program naming_programs[] = {
    {"state", Layers::both, lookup_calls, true, "no kernel names are learned from lookups by name"},
    {"note", Layers::both, calls_of({KIND_REGISTER}), false, "no kernel names are learned from registrations"},
    {"mark", Layers::runtime, launch_calls, false, "no kernel names are learned from launches", false},
};

std::string at_least(std::optional<uint64_t> least_ns)
{
    return least_ns ? fmt::format(" of {} or longer", duration_text(std::chrono::nanoseconds(*least_ns)))
                    : std::string();
}

class CudaGap : public Tool {
public:
    CudaGap() : Tool(about) { add_options(command_line(), settings_); }

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void record(Output& output, const RingRecord& record) override;
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;

private:
    cudagap_bpf& skeleton() const { return bpf_.as<cudagap_bpf>(); }
    void add(Output& output, const gap_record& gap);
    Frames frames_of(const gap_record& gap);
    void print_times(Output& output, const std::vector<ThreadTime>& times, uint64_t wall_ns, double seconds);
    void forget_ended();
    bool needs_circumstances() const;
    Context context(double seconds) { return {options_, settings_, *processes_, seconds, *around_}; }

    Settings settings_;
    std::optional<ThreadTimes> times_;
    std::optional<GapCounts> gaps_;
    std::optional<WakingThreads> wakers_;
    std::optional<BlockStacks> stacks_;
    std::optional<FileWaits> file_waits_;
    std::optional<LaunchNames> names_; // set only with -e
    GapCauses causes_;
    BlockedFiles files_;
    std::optional<CircumstancesOf> around_;
    PeersOf peers_;
    std::optional<Suspensions> suspensions_;
    std::optional<CallEvents<GapLine, Context>> lines_;
};

RunPlan CudaGap::plan()
{
    validate_options(settings_, options_);
    RunPlan plan{.traced = "threads that use CUDA", .noun = "call", .lines = settings_.events || settings_.why};
    if (settings_.tcp)
        plan.noun = "TCP connection of a process that uses CUDA,"; // the message may continue with "by process 123"
    if (settings_.files)
        plan.noun = "blocking read or write,"; // the message may continue with "by process 123"
    if (settings_.events || settings_.histogram())
        plan.noun = fmt::format("gap{} between launches", at_least(settings_.least_ns));
    for (const CallSet& calls :
         {launch_calls, copy_calls, batch_calls, calls_of({KIND_WAIT}), alloc_calls, free_calls, handle_calls,
          lookup_calls, graph_calls, calls_of({KIND_INIT, KIND_CONTEXT_NEW, KIND_CONTEXT_CREATE, KIND_GRAPH_UPLOAD})})
        plan.programs.push_back({"call", Layers::driver, calls, true});
    if (settings_.events) {
        names_.emplace(settings_.names, &wait_budget_);
        std::ranges::for_each(options_.pids, [this](pid_t pid) { names_->expect(pid); });
        plan.programs.insert(plan.programs.end(), std::begin(naming_programs), std::end(naming_programs));
    }
    if (settings_.why)
        plan.programs.push_back({"collective", Layers::nccl, calls_of({KIND_COLLECTIVE, KIND_MESSAGE}), false,
                                 "waits for other ranks are not recognized"});
    plan.needs_returns = true;
    plan.replay = {.by = settings_.by,
                   .sort = settings_.sort == Settings().sort ? "" : settings_.sort,
                   .adds_up = false}; // rows cannot be merged, because their parts and causes may differ
    if (settings_.why)
        plan.usual_duration = 5s;
    plan.hooks.begin.emplace_back(
        [this](const Running& running) { user_stacks_->track(running.users(), settings_.stacks); });
    plan.hooks.names_lost = [this] { return names_ ? names_->lost_since_last() : 0; };
    return plan;
}

void CudaGap::configure(const Filters&)
{
    configure_kernel_side(bpf_, settings_, options_.unit_ns());
    if (names_)
        bpf_map__set_max_entries(skeleton().maps.unsent_names, KernelNames::unsent_max);
}

void CudaGap::load()
{
    times_.emplace(bpf_map__fd(skeleton().maps.thread_times), bpf_map__fd(skeleton().maps.free_places),
                   skeleton().bss->places_taken, settings_.cheap);
    Tool::load();
    around_.emplace(options_.host_root);
    suspensions_.emplace(options_.host_root);
    gaps_.emplace(bpf_map__fd(skeleton().maps.gap_counts), bpf_map__fd(skeleton().maps.stream_gaps));
    UserStacks::Kernel kernel = UserStacks::kernel_of(bpf_, "block_stacks");
    kernel.starts_in_probe = false;
    stacks_.emplace(bpf_map__fd(skeleton().maps.block_counts), kernel, &wait_budget_);
    user_stacks_ = &stacks_->of_users();
    user_stacks_->begin(options_.pids);
    file_waits_.emplace(bpf_map__fd(skeleton().maps.file_counts));
    wakers_.emplace(bpf_map__fd(skeleton().maps.followed_threads), skeleton().bss->marks);
    lines_.emplace(line_fields(), context(0));
    if (names_)
        names_->read_unsent_from(bpf_map__fd(skeleton().maps.unsent_names));
    follow_kernel(skeleton());
}

void CudaGap::record(Output& output, const RingRecord& record)
{
    if (const auto* name = record.as<name_record>(RECORD_NAME))
        names_->learn(*name, record.size);
    else if (const auto* gap = record.as<gap_record>(RECORD_GAP))
        add(output, *gap);
}

void CudaGap::add(Output& output, const gap_record& gap)
{
    const GapFiles files = files_.of(gap);
    if (settings_.why) {
        causes_.add(gap, files);
        return;
    }
    const GapLaunches launches = names_->of(gap);
    std::vector<std::string> wakers = waker_lines(gap, files);
    if (!options_.json)
        wakers.insert(wakers.begin(), launches_line(launches, settings_.names));
    const Frames frames = frames_of(gap);
    const ExtraLines stack(frames);
    ExtraLines below("wakers", wakers);
    below.then = &stack;
    lines_->print(output, {gap, files, launches}, below);
}

// Stack of the gap's longest blocked period; empty if the thread was in a CUDA call then.
Frames CudaGap::frames_of(const gap_record& gap)
{
    const waker& block = gap.gap.waker;
    if (!settings_.stacks || !block.blocked_ns || !is_blocked(block.part))
        return {};
    return stacks_->frames(gap.key.image, block.user_stack, block.kernel_stack);
}

// With -e there are no reports, so exited threads are forgotten here.
bool CudaGap::tick(Output&)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    files_.tick();
    if (settings_.stacks)
        stacks_->tick(*times_);
    if (needs_circumstances())
        around_->track(processes_->images(), now);
    if (settings_.tcp || settings_.why)
        peers_.track(processes_->images());
    if (settings_.events) {
        processes_->refresh();
        times_->forget_ended(times_->drain(now));
        wakers_->forget_idle(now);
        forget_ended();
    }
    return names_ && names_->tick();
}

void CudaGap::print(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (settings_.events)
        return;
    processes_->refresh();
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    const std::vector<ThreadTime> times = times_->drain(now);
    if (settings_.view.who.thread)
        for (const ThreadTime& time : times)
            processes_->learn_thread(time.image, time.tid, time.comm, time.ended);
    if (needs_circumstances())
        around_->refresh(threads_of(times), now);
    if (settings_.tcp || settings_.why)
        peers_.refresh();
    print_times(output, times, wall_ns, static_cast<double>(interval_ns) / 1e9);
    times_->forget_ended(times);
    forget_ended();
}

void CudaGap::print_times(Output& output, const std::vector<ThreadTime>& times, uint64_t wall_ns, double seconds)
{
    const CallView& view = settings_.view;
    if (settings_.why)
        print_why(output, times, {causes_, peers_, *suspensions_, probes_}, context(seconds), wall_ns);
    else if (settings_.tcp)
        print_table<PeerKey, PeerGroup, Context>(
            output, peer_fields(), group_peers(times, peers_, view, *processes_), context(seconds), wall_ns,
            settings_.sort, [](const PeerGroup& group) { return static_cast<double>(group.peer.connections); });
    else if (settings_.files)
        print_table<FileKey, FileGroup, Context>(output, file_fields(), file_waits_->drain(times, view, *processes_),
                                                 context(seconds), wall_ns, settings_.sort,
                                                 [](const FileGroup& group) { return static_cast<double>(group.ns); });
    else if (settings_.stacks)
        print_table<BlockKey, BlockGroup, Context>(
            output, stack_fields(), stacks_->drain(times, view, *processes_), context(seconds), wall_ns, settings_.sort,
            [](const BlockGroup& group) { return static_cast<double>(group.ns); },
            [this](const BlockKey& key, const BlockGroup&) { return stacks_->frames(key); });
    else if (settings_.histogram())
        print_histograms(output, gaps_->drain(times, view, *processes_), context(seconds), wall_ns);
    else
        print_groups(output, group_times(times, view, *processes_), context(seconds), wall_ns);
}

// True if the output shows circumstances of processes, such as the cgroup's quota and pressure. Reading them takes a
// dozen file reads per process.
bool CudaGap::needs_circumstances() const
{
    if (settings_.events || settings_.stacks || settings_.tcp || settings_.files || settings_.histogram())
        return false;
    return settings_.why || options_.writes_json() || !options_.columns.empty() || settings_.sort != Settings().sort;
}

void CudaGap::forget_ended()
{
    const std::vector<ImageId> exited = processes_->extract_exited(leaving_);
    processes_->forget({exited.begin(), exited.end()});
    around_->forget(exited);
    peers_.forget(exited);
    stacks_->forget(exited);
    if (names_)
        std::ranges::for_each(exited, [this](const ImageId& image) { names_->forget(image); });
}

} // namespace
} // namespace gpusnoop::cudagap

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_cudagap()
{
    return std::make_unique<cudagap::CudaGap>();
}
