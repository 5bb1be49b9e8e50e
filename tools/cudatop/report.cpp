// SPDX-License-Identifier: Apache-2.0
// Reports of cudatop: rows and verdicts of an interval, printed on the screen, in tables, as JSON, or with --why.
#include "base/clock.hpp"
#include "tools/cudatop/batch.hpp"
#include "tools/cudatop/detail.hpp"
#include "tools/cudatop/tool.hpp"
#include "tools/cudatop/verdicts.hpp"

#include <algorithm>
#include <iterator>

namespace gpusnoop::cudatop {

// Tracks each process that maps a driver. The process then has a row even before its first traced call, for example
// during a wait that began before tracing. Reads the command line now, so that the report is not delayed.
void CudaTop::track_users()
{
    for (const pid_t pid : running_->users())
        processes().command_line(processes().track(static_cast<uint32_t>(pid)));
}

// Shows a row for each process, before the first report provides values.
void CudaTop::show_users()
{
    track_users();
    counted_.facts = head_->facts(0, name_filter_->process_count());
    show({});
}

void CudaTop::scan_earlier_waits()
{
    if (running_)
        waits_->scan_earlier(running_->users());
}

// Adds the calls of the last interval and the memory held now. If rows are processes or GPUs, those without calls are
// added, too.
void CudaTop::add_to(Groups& groups, const View& view, const std::set<ImageId>& ended)
{
    counted_.add_to(groups);
    groups.add_held(holdings_, ended);
    if (view.of_processes())
        for (const ImageId& image : processes().images())
            if (name_filter_->includes(image))
                groups.add_idle(image);
    if (view.of_gpus())
        for (const NvmlDeviceState& state : figures_->states())
            groups.add_gpu({Gpu::By::index, static_cast<uint16_t>(state.index)});
}

Snapshot CudaTop::snapshot(const std::set<ImageId>& ended)
{
    View view = settings_.rows;
    view.set_gpus(*gpus_);
    Groups groups(view, settings_.latency, *names_, processes());
    add_to(groups, view, ended);
    const Context context{{options_, settings_, processes(), counted_.seconds, probes_},
                          *users_,
                          *figures_,
                          *gpus_,
                          *held_gpus_,
                          xids_of_,
                          *diagnosis_,
                          known_,
                          driver_ && driver_->waits_for().empty(),
                          xids_.has_value()};
    std::map<Key, Group> joined = groups.joined();
    if (within_) {
        view = within_->rows();
        view.set_gpus(*gpus_);
        Groups around(view, settings_.latency, *names_, processes());
        add_to(around, view, ended);
        within_->update(around.joined());
        std::erase_if(joined, [this](const auto& item) { return !within_->has(item.second); });
    }
    Snapshot snapshot;
    snapshot.wall_ns = counted_.wall_ns;
    snapshot.seconds = counted_.seconds;
    snapshot.by = settings_.by.value_or("pid");
    snapshot.columns = columns(context);
    snapshot.rows = rows(joined, context);
    snapshot.totals = {total(snapshot.rows, snapshot.columns)};
    if (measured())
        add_verdicts(snapshot, name_filter_->filter(diagnosis_->verdicts()), joined);
    if (!open_.empty())
        open_row(joined, context, ended, snapshot);
    add_facts(snapshot, counted_.facts);
    add_gpus(snapshot, *figures_, *gpus_, processes());
    return snapshot;
}

void CudaTop::open_row(const std::map<Key, Group>& groups, const Context& context, const std::set<ImageId>& ended,
                       Snapshot& snapshot)
{
    const Interval interval{
        counted_.calls,
        counted_.waits,
        counted_.pending,
        holdings_,
        ended,
        *names_,
        [this](const ImageId& image, int32_t stack, uint64_t caller) { return frames(image, stack, caller).lines; }};
    snapshot.detail_of = open_;
    for (const auto& [key, group] : groups)
        if (row_id(key) == open_) {
            since_opened_.follow(group.who.images, holdings_);
            snapshot.detail = {processes_part(open_, group.who.images, snapshot, context)};
            std::ranges::move(detail(key, group.who.images, interval, since_opened_, context),
                              std::back_inserter(snapshot.detail));
        }
}

void CudaTop::show(const std::set<ImageId>& ended)
{
    live_->show(snapshot(ended));
}

void CudaTop::print_tables(Output& output, const Snapshot& snapshot)
{
    if (settings_.why)
        return print_why(output, snapshot);
    if (Output* const programs = output.for_programs())
        print_json(*programs, snapshot, settings_.arrangement());
    if (Output* const people = output.for_people())
        print_text(*people, snapshot, settings_.arrangement(), options_.rows);
    print_verdicts(output, name_filter_->filter(diagnosis_->verdicts()), snapshot);
}

void CudaTop::print_why(Output& output, const Snapshot& snapshot)
{
    const std::vector<const Verdict*> verdicts = name_filter_->filter(diagnosis_->verdicts());
    const auto frames_of = [this](const Verdict& of) {
        return of.stack < 0 ? std::vector<std::string>() : frames(of.process, of.stack, of.caller).lines;
    };
    if (!running_->loop.stopped())
        return exited_verdicts_.add(verdicts, frames_of);
    const auto exited_now = static_cast<size_t>(std::ranges::count_if(
        reported_exits(), [this](const ImageId& image) { return name_filter_->includes(image); }));
    const std::vector<WhyLine> lines = exited_verdicts_.with(verdicts, frames_of);
    cudatop::print_why(output, lines, snapshot,
                       {.processes = name_filter_->process_count() + exited_verdicts_.processes(),
                        .exited = exited_now + exited_verdicts_.processes(),
                        .seconds = static_cast<double>(clock_ns(CLOCK_MONOTONIC) - began_ns_) / 1e9,
                        .dropped = exited_verdicts_.dropped()});
}

// Returns the processes in this report that have exited. A process that called exec has not exited. With --why, the
// last report also includes exits that have not been processed yet.
std::set<ImageId> CudaTop::reported_exits()
{
    std::set<ImageId> all = exited();
    if (settings_.why && running_->loop.stopped()) {
        std::set<uint32_t> pids = processes().pids();
        for (const ImageId& image : processes().extract_exited(pids))
            all.insert(image);
    }
    std::erase_if(all, [this](const ImageId& image) { return processes().info(image).replaced; });
    return all;
}

void CudaTop::print(Output& output, uint64_t wall_ns, uint64_t interval_ns)
{
    const double seconds = static_cast<double>(waits_->end_interval(interval_ns)) / 1e9;
    learn_xids();
    const std::span<const CallDelta> rows = calls();
    figures_->refresh();
    held_gpus_->refresh(*figures_, clock_ns(CLOCK_MONOTONIC));
    counted_ = {.calls = {rows.begin(), rows.end()},
                .waits = waits_->of_interval(seconds, processes()),
                .pending = pending_calls_->read(),
                .wall_ns = wall_ns,
                .seconds = seconds,
                .facts = {}};
    for (const Waiting::Part& part : counted_.waits)
        name_filter_->mark_active(part.key.image);
    for (const driver_call& call : counted_.pending)
        name_filter_->mark_active(call.key.image);
    since_opened_.add(counted_.calls, counted_.waits, seconds);
    track_users();
    for (const CallDelta& delta : counted_.calls)
        gpus_->note_call(delta.key);
    gpus_->refresh(processes().images(), clock_ns(CLOCK_MONOTONIC));
    counted_.facts = head_->facts(seconds, name_filter_->process_count());
    const std::set<ImageId> exited_now = reported_exits();
    std::vector<StuckCall> stuck;
    if (stuck_calls_)
        stuck = stuck_calls_->of_interval(counted_.calls, counted_.waits, processes());
    for (const StuckCall& call : stuck)
        name_filter_->mark_active(call.image);
    diagnosis_->add({.calls = counted_.calls,
                     .waits = counted_.waits,
                     .driver_calls = counted_.pending,
                     .stuck_calls = stuck,
                     .holdings = holdings_,
                     .xids = xids_of_,
                     .nvml = *figures_,
                     .gpus = *gpus_,
                     .exited = exited_now,
                     .now_ns = clock_ns(CLOCK_MONOTONIC),
                     .seconds = seconds,
                     .function_of = [this](const ImageId& image, int32_t stack,
                                           uint64_t caller) { return calling_line(image, stack, caller); },
                     .suspension_of =
                         [this](uint32_t pid, uint32_t tid) {
                             return suspensions_->of(static_cast<pid_t>(pid), static_cast<pid_t>(tid));
                         }});
    if (live_)
        show(exited());
    if (!live_ || output.for_programs())
        print_tables(output, snapshot(exited()));
    // The screen may show this interval again, but processes that are no longer tracked must not appear.
    counted_.forget(exited());
}

} // namespace gpusnoop::cudatop
