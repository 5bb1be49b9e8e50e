// SPDX-License-Identifier: Apache-2.0
// ncclwait: finds the rank that keeps the others waiting (the straggler).
#include "attach/load_plan.hpp"
#include "base/bpf_map.hpp"
#include "base/clock.hpp"
#include "base/loop.hpp"
#include "base/shares.hpp"
#include "bpf/shared/record.h"
#include "names/user_stacks.hpp"
#include "run/tool.hpp"
#include "tools/ncclwait/collectives.hpp"
#include "tools/ncclwait/columns.hpp"
#include "tools/ncclwait/options.hpp"
#include "tools/ncclwait/ras.hpp"
#include "tools/tools.hpp"

#include "ncclwait.skel.h" // must follow the headers of its types

#include <algorithm>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace gpusnoop::ncclwait {
namespace {

constexpr ToolSpec about{
    .name = "ncclwait",
    .summary = "Shows which rank keeps the others waiting (the straggler): NCCL calls by communicator and last rank.",
    .examples = "  ncclwait                    # a row per communicator, until Ctrl-C\n"
                "  ncclwait 5                  # a table every 5 seconds\n"
                "  ncclwait --by rank 5        # how long each rank waits for the last one, and how often it is last\n"
                "  ncclwait --by rank -U 5     # ... and the call stack of late ranks\n"
                "  ncclwait --by pod 5         # how long the ranks of each pod wait\n"
                "  ncclwait -e                 # a line per collective: when each rank entered it\n"
                "  ncclwait -e -U              # ... and the call stack of the last rank\n"
                "  ncclwait -x                 # failed calls, and communicators with asynchronous errors\n"
                "  ncclwait --stalled 30       # report ranks that are missing for 30 s, and what they do instead\n"
                "  ncclwait --ras              # ... and query NCCL's RAS service about ranks on other hosts\n"
                "  ncclwait -c train.slice 5   # ranks of one cgroup\n"
                "  ncclwait --json 1           # one JSON object per row and second\n",
    .open = BpfObject::open<ncclwait_bpf>,
    .without_returns = "it is unknown whether calls were enqueued or failed",
};

constexpr unsigned ticks_at_start = 3;

class NcclWait : public Tool {
public:
    NcclWait() : Tool(about) { add_options(command_line(), settings_); }

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void record(Output& output, const RingRecord& record) override;
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;

private:
    void add(const collective_call& call);
    void check_stalls(Output& output);
    void print_lines(Output& output, bool last);
    std::vector<std::string> activity_lines(const CollectiveVerdict& verdict);
    Frames late_callers(const CollectiveGroup& group);
    void forget_ended();
    void forget_shown();
    Context context(double seconds) { return {options_, settings_, *processes_, seconds, cpu_}; }

    Settings settings_;
    std::optional<Collectives> collectives_;
    std::optional<CollectiveVerdicts> verdicts_;
    std::optional<RasVerdicts> ras_;
    std::optional<RankLines> lines_;
    CallerCpu cpu_;
    std::optional<UserStacks> callers_;
    std::optional<Shares> shares_;
    std::optional<FrontCalls> front_calls_;
    bool waits_traced_ = false;
    unsigned ticks_ = 0;
    std::set<ImageId> exited_; // exited processes, which are forgotten after the next report
};

RunPlan NcclWait::plan()
{
    validate_options(settings_, options_);
    RunPlan plan{.traced = options_.failed_only ? "failed NCCL calls" : "NCCL calls",
                 .noun = "NCCL call",
                 .lines = settings_.events};
    const std::string_view uncaptured = "calls captured into graphs count as executed";
    plan.programs = {
        {"coll", Layers::nccl, nccl_calls, true},
        {"state", Layers::driver, capture_calls, true, uncaptured},
        {"event", Layers::driver, event_calls, false, uncaptured},
        {"life", Layers::driver, stream_calls, true, stale_streams},
        {"waited", Layers::driver, work_waits, true,
         "the lateness of ranks is not known in jobs that began before the run", false},
    };
    plan.needs_returns = true;
    plan.replay = {.by = settings_.by,
                   .sort = settings_.sort == Settings().sort ? "" : settings_.sort,
                   .adds_up = false}; // rows do not record which rank was last in each call
    plan.hooks.begin.emplace_back(
        [this](const Running& running) { callers_->track(running.users(), options_.user_stacks); });
    return plan;
}

void NcclWait::configure(const Filters&)
{
    opened_.switches.naming = &waits_traced_;
    const bool stacks = options_.user_stacks && (settings_.events || settings_.rank);
    bpf_.set("per_stream", settings_.stream);
    bpf_.set("stacks_of_calls", stacks);
    UserStacks::follow_python(bpf_, stacks && UserStacks::can_follow_python() ? PYTHON_STACKS : 0);
    UserStacks::follow_windows(bpf_, stacks ? WINDOW_STACKS : 0);
    if (!stacks)
        bpf_.resize("call_stacks", 1);
    collectives_.emplace(probes_, Collectives::Detail{.per_thread = settings_.view.who.thread,
                                                      .per_size = settings_.size,
                                                      .per_stream = settings_.stream,
                                                      .lines = settings_.events,
                                                      .failed = options_.failed_only,
                                                      .unit_ns = settings_.histogram() ? options_.unit_ns() : 1});
    verdicts_.emplace(probes_, settings_.stalled_ns, options_.host_root);
    if (settings_.ras_port)
        ras_.emplace(static_cast<uint16_t>(*settings_.ras_port), settings_.stalled_ns);
}

void NcclWait::load()
{
    shares_.emplace(bpf_.get());
    Tool::load();
    lines_.emplace(line_fields(), context(0));
    UserStacks::Kernel kernel = UserStacks::kernel_of(bpf_, "call_stacks");
    kernel.starts_in_probe = false;
    user_stacks_ = &callers_.emplace(kernel, StackView(), &wait_budget_);
    callers_->begin(options_.pids);
    front_calls_.emplace(bpf_.fd("front_calls"));
}

void NcclWait::record(Output&, const RingRecord& record)
{
    if (const auto* comm = record.as<comm_record>(RECORD_COMM)) {
        collectives_->learn(*comm);
    } else if (const auto* call = record.as<collective_call>(RECORD_COLLECTIVE)) {
        add(*call);
    } else if (const auto* waited = record.as<waited_record>(RECORD_WAITED)) {
        collectives_->waited(*waited);
        verdicts_->waited(*waited);
    }
}

void NcclWait::add(const collective_call& call)
{
    collectives_->add(call);
    const auto image = collectives_->image_of(call.comm);
    if (!image)
        return;
    callers_->expect(*image, call.stack);
    if (settings_.events || settings_.view.who.thread)
        processes_->learn_thread(*image, call.tid, call.thread_name, false);
}

bool NcclWait::tick(Output& output)
{
    callers_->tick();
    collectives_->join();
    if (settings_.rank)
        cpu_.read(collectives_->callers(), clock_ns(CLOCK_MONOTONIC));
    if (running_)
        check_stalls(output);
    forget_ended();
    if (settings_.events) {
        print_lines(output, false);
        collectives_->drain();
        forget_shown();
    }
    // Returns true if waits must be traced: at first, until it is known whether any job began before the run, and then
    // only while results depend on waits.
    return ticks_++ < ticks_at_start || settings_.events || collectives_->needs_alignment() || verdicts_->needs_waits();
}

void NcclWait::check_stalls(Output& output)
{
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (const CollectiveVerdict& verdict : verdicts_->check(*collectives_, now_ns)) {
        print_verdict(output, verdict, context(0), activity_lines(verdict));
        if (ras_)
            ras_->request(verdict);
    }
    if (ras_)
        for (const CollectiveVerdict& verdict : ras_->poll(now_ns))
            print_verdict(output, verdict, context(0), activity_lines(verdict));
}

// Lines to print below a verdict: the activity of ranks, with call stacks if -U is given.
std::vector<std::string> NcclWait::activity_lines(const CollectiveVerdict& verdict)
{
    std::vector<std::string> lines;
    for (const CollectiveVerdict::Activity& one : verdict.activities) {
        lines.push_back(one.text);
        if (options_.user_stacks && !one.callers.empty())
            for (const std::string& frame : callers_->frames(one.image, one.callers).lines)
                lines.push_back("    " + frame);
    }
    return lines;
}

// The call stack whose late calls made other ranks wait longest in total.
Frames NcclWait::late_callers(const CollectiveGroup& group)
{
    const auto& from = group.sums.late_from;
    if (!settings_.rank || from.empty())
        return {};
    const auto top = std::ranges::max_element(from, {}, [](const auto& stack) { return stack.second; });
    return callers_->frames(*group.who.images.begin(), top->first, 0);
}

void NcclWait::print_lines(Output& output, bool last)
{
    for (const Collectives::Line& line : collectives_->drain_lines(clock_ns(CLOCK_MONOTONIC), last))
        print_line(output, *lines_, line, context(0),
                   [this](const auto& arrival) { return callers_->frames(arrival.image, arrival.stack, 0); });
}

void NcclWait::forget_ended()
{
    const std::vector<ImageId> exited = processes_->extract_exited(leaving_);
    for (const ImageId& image : exited) {
        collectives_->forget(image);
        callers_->on_exit(static_cast<pid_t>(image.pid));
    }
    exited_.insert(exited.begin(), exited.end());
    if (exited.empty())
        return;
    front_calls_->forget(exited_);
    shares_->release(exited);
    const auto erase = [&](const bpf_map* map) {
        return erase_images(bpf_map__fd(map), [&](const image& image) { return exited_.contains(image); });
    };
    const auto& maps = bpf_.as<ncclwait_bpf>().maps;
    for (const bpf_map* map : {maps.comms, maps.capturing_streams, maps.captured_events})
        erase(map);
    __atomic_fetch_sub(bpf_.find<uint64_t>("captures_open"), erase(maps.captures), __ATOMIC_RELAXED);
}

// Call this when everything about exited processes has been reported.
void NcclWait::forget_shown()
{
    for (const ImageId& image : exited_)
        callers_->forget(image);
    processes_->forget(std::exchange(exited_, {}));
}

void NcclWait::print(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    const bool last = running_ && running_->loop.stopped();
    processes_->refresh();
    collectives_->join();
    if (last) {
        check_stalls(output); // before join(true), which empties the queues that show stalls
        collectives_->join(true);
    }
    if (settings_.events) {
        if (last)
            print_lines(output, true);
        return;
    }
    if (settings_.rank)
        cpu_.read(collectives_->callers(), clock_ns(CLOCK_MONOTONIC));
    const CollectiveGroups groups = group_parts(collectives_->drain(), settings_, *processes_);
    const Context shown = context(static_cast<double>(interval_ns) / 1e9);
    if (settings_.histogram())
        print_histograms(output, groups, shown, wall_ns);
    else
        print_groups(output, groups, shown, wall_ns, [this](const auto& group) { return late_callers(group); });
    cpu_.begin_interval();
    forget_shown();
}

} // namespace
} // namespace gpusnoop::ncclwait

std::unique_ptr<gpusnoop::Tool> gpusnoop::make_ncclwait()
{
    return std::make_unique<ncclwait::NcclWait>();
}
