// SPDX-License-Identifier: Apache-2.0
// cudasync: who waits for the device, in which call, for how long, and who asks again and again instead.
#include "call_fields.hpp"
#include "call_tool.hpp"
#include "clock.hpp"
#include "cudasync_columns.hpp"
#include "skeleton.hpp"

#include "../bpf/attach.h"
#include "../bpf/wait.h"
#include "cudasync.skel.h" // after the types that it mentions

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop::cudasync {
namespace {

class CudaSync : public CallTool {
public:
    CudaSync() : CallTool(settings_) {}

    std::string_view name() const override { return "cudasync"; }
    std::string_view summary() const override
    {
        return "Shows the time that threads spend waiting for the device: in synchronizing calls, synchronous copies "
               "and "
               "frees, and in polling; with those that still wait.";
    }
    std::string_view examples() const override
    {
        return "  cudasync                    # waits of all processes by what is waited for, until Ctrl-C\n"
               "  cudasync 1                  # a table each second, with what still waits\n"
               "  cudasync --by thread 5      # which thread waits, and for which share of its time\n"
               "  cudasync --by pod 5         # which pod waits\n"
               "  cudasync -p 1234 -U         # call stacks that wait most\n"
               "  cudasync -H duration        # a histogram of how long waits are\n"
               "  cudasync -e -l 1000         # one line per wait of a millisecond or more\n"
               "  cudasync -x                 # only waits that return an error: where a failed kernel is told\n"
               "  cudasync --json 1           # one JSON object per row and second\n";
    }

    void add_options(CLI::App& app) override;
    std::string traced() const override { return options_.failed_only ? "waits that fail" : "waits"; }
    std::vector<Hook> hooks(std::span<const Probe> probes) const override;
    bpf_object* open() override;
    void configure(const Options& options, std::span<const Probe> probes, const Filters& filters) override;
    void load() override;
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    bool tick(Output& output) override;
    void attached_again() override { skeleton_->bss->attach_generation = COOKIE_SECOND; }

private:
    // Those that still wait are no failures, and have no duration yet.
    bool shows_waiting() const { return !settings_.events && !settings_.histogram() && !options_.failed_only; }
    void settle() override;
    std::vector<Probe> choose_probes() const override;
    int load_skeleton() override { return cudasync_bpf::load(skeleton_.get()); }
    bpf_object* object() override { return skeleton_->obj; }
    void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) override;
    void print_event(Output& output, const call_event& event) override;

    Settings settings_;
    Skeleton<cudasync_bpf> skeleton_;
    std::optional<Waiting> waiting_;
    std::optional<CallEvents> lines_;
};

void CudaSync::add_options(CLI::App& app)
{
    settings_.sort = "total_ns";
    settings_.latency = true;
    add_call_options(app, "wait, ", "pid,wait", "duration");
    app.add_option_function<double>(
           "-l,--least",
           [this](double least_us) {
               if (!(least_us >= 0 && least_us <= 1e12)) // a NaN is neither
                   throw CLI::ValidationError("", "a least duration (-l) is a number of microseconds, at most 1e12");
               settings_.least_ns = static_cast<uint64_t>(least_us * 1000);
           },
           "only waits that last at least so many microseconds")
        ->type_name("MIN_US");
}

void CudaSync::settle()
{
    Settings& s = settings_;
    if (s.histogram() && s.measure != "duration")
        throw UsageError(fmt::format("-H takes duration, not '{}'", s.measure));
    check_sort(s.sort);
    const Dimension wait[] = {{"wait", &s.wait}};
    if (s.by) {
        parse_by(*s.by, s.view, wait);
    } else {
        s.wait = true;
        s.view.who.pid |= !s.histogram();
    }
}

std::vector<Probe> CudaSync::choose_probes() const
{
    std::vector<Probe> all;
    for (Library library : layers())
        append_probes(all, library, wait_kinds);
    std::erase_if(all, [](const Probe& probe) { return !waits(probe.row); });
    if (settings_.view.device)
        for (Library library : {Library::driver, Library::runtime})
            append_probes(all, library, device_kinds);
    return all;
}

std::vector<Hook> CudaSync::hooks(std::span<const Probe> probes) const
{
    return {{"wait", true, probes_of(probes, wait_kinds), true},
            {"state", true, probes_of(probes, device_kinds), true}};
}

bpf_object* CudaSync::open()
{
    skeleton_ = open_skeleton<cudasync_bpf>();
    return skeleton_->obj;
}

void CudaSync::configure(const Options& options, std::span<const Probe> probes, const Filters& filters)
{
    auto& data = *skeleton_->rodata;
    configure_shared(data, options, filters);
    configure_probes(data, probes, filters);
    configure_calls(data, settings_, options);
    data.per_thread = true; // a share of time is one of the threads'
    data.least_ns = settings_.least_ns;
    data.show_waiting = shows_waiting();
    size_tables(skeleton_->obj, {.thread = true});
}

void CudaSync::load()
{
    CallTool::load();
    waiting_.emplace(bpf_map__fd(skeleton_->maps.waiting), bpf_map__fd(skeleton_->maps.free_places),
                     skeleton_->bss->reported_ns);
    lines_.emplace(options_, settings_, processes(), probes(),
                   std::initializer_list<Column>{
                       {"WAIT", "wait", Unit::text, 7},
                       {"", "handle", Unit::hex, 0, false},
                       {"", "not_ready", Unit::count, 0, false},
                   },
                   std::initializer_list<Column>{{"FUNCTION", "", Unit::text, 8, true, false}});
}

void CudaSync::report(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    if (shows_waiting())
        interval_ns = waiting_->end_interval(clock_ns(CLOCK_MONOTONIC), interval_ns);
    CallTool::report(output, wall_ns, interval_ns);
}

bool CudaSync::tick(Output& output)
{
    waiting_->forget_ended();
    return CallTool::tick(output);
}

void CudaSync::print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds)
{
    WaitGroups groups(settings_, processes());
    for (const CallDelta& delta : calls)
        groups.add(delta);
    if (shows_waiting())
        for (const Waiting::Part& part : waiting_->take(settings_.least_ns))
            groups.add(part);
    const Context context{options_, settings_, processes(), seconds, probes()};
    if (settings_.histogram())
        print_histograms(output, groups, context, wall_ns);
    else
        print_groups(output, groups, context, wall_ns,
                     [this](const WaitKey& key, const WaitGroup& group) { return row_frames(key, group.who); });
}

void CudaSync::print_event(Output& output, const call_event& event)
{
    const call_key& key = event.key;
    lines_->print(output, event,
                  {std::string(wait_name(key.wait.wait)), key.subject ? Cell(uint64_t{key.subject}) : Cell(),
                   uint64_t{key.flags & CALL_NOT_READY ? 1U : 0U}},
                  {function_name(probes(), key.function)}, event_frames(event));
}

} // namespace
} // namespace gpusnoop::cudasync

int main(int argc, char** argv)
{
    gpusnoop::cudasync::CudaSync tool;
    return gpusnoop::run_tool(argc, argv, tool);
}
