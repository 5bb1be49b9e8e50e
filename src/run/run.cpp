// SPDX-License-Identifier: Apache-2.0
#include "run/run.hpp"

#include "attach/calibrate.hpp"
#include "attach/load_plan.hpp"
#include "attach/refusal.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/privileges.hpp"
#include "base/text.hpp"
#include "base/withdrawals.hpp"
#include "output/flames_output.hpp"
#include "output/output_buffer.hpp"
#include "output/recording.hpp"
#include "output/trace_output.hpp"
#include "proc/process.hpp"
#include "run/info.hpp"
#include "run/preflight.hpp"
#include "run/report_notes.hpp"
#include "run/started_program.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

// Maximum remarks for Output::attached(), which prints all of them at each call. Later remarks cause only a warning.
constexpr size_t remarks_max = 64;

// Adds keys to a BPF map that is used as a set.
template<class Key>
void fill(bpf_object* object, const char* map, const std::vector<Key>& keys, std::string_view what)
{
    const int fd = bpf_object__find_map_fd_by_name(object, map);
    for (const Key& key : keys) {
        const uint8_t yes = 1;
        if (bpf_map_update_elem(fd, &key, &yes, BPF_ANY))
            throw Error(fmt::format("too many {1}: {0}", keys.size(), what),
                        "leave the option out to trace all of them");
    }
}

} // namespace

void Run::run()
{
    const bool confidential = is_confidentiality_lockdown();
    preflight(confidential);
    set_load_handler(confidential);
    drop_capabilities();
    if (options_.info) {
        leave_out_harmful_returns();
        bpf_object* object = load();
        throw Answer(info({.tool = tool_.spec().name,
                           .options = options_,
                           .object = object,
                           .tier = attacher_ ? std::optional(attacher_->tier()) : std::nullopt,
                           .plan = plan_,
                           .probes = probe_plan_.probes,
                           .scope = scope_,
                           .remarks = remarks_,
                           .kernel_hooks = opened_.kernel_hooks}));
    }
    // created first, because errors must be printed before a screen opens
    std::vector<SideOutput> beside = side_outputs();
    output_ = options_.folded           ? make_folded_output(options_)
              : plan_.hooks.make_output ? plan_.hooks.make_output()
                                        : make_output(options_);
    output_ = make_output_with_sides(std::move(output_), std::move(beside));
    output_->give_up_when([this](std::chrono::nanoseconds stalled) { return gives_up(stalled); });
    try {
        trace();
    } catch (...) {
        end_tool(); // closes the screen before the error is printed and the slow detach begins
        throw;
    }
}

std::vector<SideOutput> Run::side_outputs() const
{
    std::vector<SideOutput> all;
    if (!options_.record.empty())
        all.push_back(make_recorded_output(std::make_unique<RecordingFile>(options_.record, options_.record_max)));
    if (!options_.flames.empty() && !options_.folded)
        all.push_back(make_flames_output(options_));
    if (!options_.trace.empty())
        all.push_back(make_trace_output(options_.trace));
    return all;
}

std::optional<PausableProbes> Run::pausable_probes()
{
    if (!attacher_)
        return std::nullopt;
    return PausableProbes{.tier = attacher_->tier(),
                          .group_of = [this](pid_t pid) { return attacher_->group_of(pid); },
                          .pause = [this](pid_t group) { attacher_->pause(group); },
                          .resume = [this](pid_t group) { attacher_->resume(group); }};
}

void Run::trace()
{
    attach();
    loop_.emplace(signals_);
    watch_processes();
    watch_gate();
    watch_targets();
    set_timers();
    malloc_trim(0); // frees memory that was used for loading and attaching
    started_ns_ = clock_ns(CLOCK_MONOTONIC);
    const uint64_t attached_ns = clock_ns(CLOCK_BOOTTIME);
    const Running running{.loop = *loop_,
                          .since_ns = program_ ? 0 : attached_ns, // 0: all calls of a started program are traced
                          .report = [this] { report(); },
                          .attached = [this] { return attached(); },
                          .lost = [this] { return losses_->sum(); },
                          .users = [this] { return members_->users(); },
                          .probes = pausable_probes()};
    tool_.begin(running);
    for (const auto& begin : plan_.hooks.begin)
        begin(running);
    announce(); // last, because a user who reads "Tracing ..." may start a workload at once
    if (program_)
        program_->release(plan_.screen);
    try {
        loop_->run();
        if (program_ && program_->gate())
            program_->gate()->open(); // lets the program continue while the last report is printed
        finish();
    } catch (const OutputStalled&) {
        warn_of(losses_->since_last()); // losses that no report contains
        throw;
    }
}

// True if the run should end, even if the loop has not noticed yet.
bool Run::is_over() const
{
    if (loop_ && loop_->stopped())
        return true;
    if (options_.duration && started_ns_ &&
        clock_ns(CLOCK_MONOTONIC) - started_ns_ >= static_cast<uint64_t>(options_.duration->count()))
        return true;
    return scope_.cgroup() ? scope_.cgroup()->is_removed() : targets_ended();
}

// True if all processes of -p have exited, or have released their memory and so make no more calls.
bool Run::targets_ended() const
{
    return !scope_.pids().empty() && std::ranges::all_of(scope_.pidfds(), [](const auto& target) {
        pollfd ended{target.second.get(), POLLIN, 0};
        return ::poll(&ended, 1, 0) > 0 || !has_memory(target.first);
    });
}

// Returns true to stop waiting for the reader of the output. During the run, the reader may block for any time, because
// the kernel side continues to count. After the run, the reader may be slow, but must not block for 2 s. After a
// signal, it has 500 ms in total.
bool Run::gives_up(std::chrono::nanoseconds stalled)
{
    if (attacher_)
        attacher_->yield_to_writers();
    if (signals_.arrived())
        return signals_.since_first() > 500ms;
    if (!is_over())
        return false;
    const std::chrono::nanoseconds now(clock_ns(CLOCK_MONOTONIC));
    if (!over_since_)
        over_since_ = now;
    return std::min(stalled, now - *over_since_) > 2s;
}

void Run::attach()
{
    leave_out_harmful_returns();
    bpf_object* object = load();
    fill(object, "target_pids", scope_.pids(), "processes (-p)");
    members_.emplace(scope_, object, attacher_ ? &*attacher_ : nullptr, program_ != nullptr);
    if (scope_.cgroup())
        fill(object, "target_cgroups", scope_.cgroup()->ids(), "cgroups (-c)");
    losses_.emplace(object);
    ring_.emplace(object, [this](const void* data, size_t size) { tool_.receive(*output_, data, size); });
    if (attacher_ && plan_.durations)
        duration_floor_ns_ = duration_floor_ns(attacher_->tier());
    watch_mappings();
    if (scope_.named()) {
        scope_.named()->rescan(); // names may have changed while programs were loaded
        verbose("only processes with a thread of that name get probes (-n)");
    }
    interval_began_ns_ = clock_ns(CLOCK_MONOTONIC); // calls are counted as soon as the first file has probes
    progress("Searching for CUDA libraries ...");
    if (attacher_)
        attacher_->attach_at_start();
    if (opened_.kernel_hooks)
        opened_.kernel_hooks->hook_new_drivers();
    // With -n, or with probes per process, a process that starts later may make calls before it has probes.
    const bool all_seen = !attacher_ || (!scope_.named() && (!plan_.by_process || program_));
    if (opened_.switches.traced_since && all_seen)
        // 1 ns after boot, so that a started program counts as fully traced: it has made no calls yet
        *opened_.switches.traced_since = program_ ? 1 : clock_ns(CLOCK_BOOTTIME);
    tick(); // attaches the naming probes, to learn the names of kernels that are loaded already
}

void Run::announce()
{
    if (attacher_)
        check_libraries();
    if (KernelHooks* hooks = opened_.kernel_hooks; hooks && !attacher_) {
        if (const std::string what = hooks->waits_for(); !what.empty()) {
            waiting_ = true;
            warn(waiting_message_ = what);
        }
        if (const std::string what = hooks->not_traced(); !what.empty())
            warn(what);
    }
    print_summary();
    if (duration_floor_ns_)
        warn(fmt::format("every latency includes about {:.2f} us of probe overhead",
                         static_cast<double>(*duration_floor_ns_) / 1000));
    output_->start(tool_.spec().name, GPUSNOOP_VERSION, duration_floor_ns_);
    print_attached();
    output_->flush();
    output_->banner(fmt::format("Tracing {}...{}", plan_.traced, options_.duration ? "" : " Hit Ctrl-C to end."));
}

// Warns about libraries that cannot be traced. Throws Error if nothing will ever be traced.
void Run::check_libraries()
{
    if (!attacher_->unscanned().empty())
        warn(remarks_.emplace_back(attacher_->unscanned()));
    if (!attacher_->in_use()) {
        const std::vector<std::string>& complaints = attacher_->complaints();
        // Only fatal with -p: otherwise, a fake library of one process would end the run for all processes.
        if (!complaints.empty() && !scope_.pids().empty())
            throw Error(
                fmt::format("CUDA libraries were found, but not one function in them can be probed: {}",
                            joined(complaints, "; ")),
                "check that root can read the library, that it is neither damaged nor stripped, and that this kernel "
                "supports this way of attaching (--attach)");
        waiting_ = !program_; // a program started by the tool has not run yet, so it cannot have loaded a library
        const std::string who = scope_.cgroup()
                                    ? "no process of cgroup " + scope_.cgroup()->argument() + " has loaded a"
                                : scope_.named() ? "no process whose name contains '" + options_.comm + "' has loaded a"
                                : scope_.pids().empty() ? "no process has loaded a"
                                                        : "the process has loaded no";
        if (waiting_ && attacher_->unscanned().empty() && !attacher_->unreadable_files())
            warn(waiting_message_ = fmt::format("{} {} yet; waiting for one", who, attacher_->library()));
    }
    // With CAP_SYS_PTRACE, unreadable processes are not worth a warning: even root cannot read the mappings of a few
    // processes, such as init of a nested container.
    if (const size_t unreadable = attacher_->unreadable(); unreadable && !has_capability(CAP_SYS_PTRACE))
        warn(fmt::format("without CAP_SYS_PTRACE the mappings of {} processes cannot be read: CUDA libraries that only "
                         "they use are not traced",
                         unreadable));
    report_complaints();
    report_remarks();
}

void Run::print_summary()
{
    if (attacher_)
        for (const std::string& line : attacher_->summary())
            verbose(line);
    if (const KernelHooks* hooks = opened_.kernel_hooks)
        for (const std::string& line : hooks->summary())
            verbose(line);
}

void Run::print_attached()
{
    if (attacher_)
        output_->attached(attacher_->functions(), attacher_->files(), tier_name(attacher_->tier()),
                          {"remarks", remarks_});
    else if (const KernelHooks* hooks = opened_.kernel_hooks)
        output_->attached(hooks->functions(), 0, hooks->ways(), {"remarks", remarks_});
}

std::string Run::attached() const
{
    return attacher_ ? fmt::format("{} functions in {} files, {}", attacher_->functions(), attacher_->files(),
                                   tier_name(attacher_->tier()))
                     : "nothing";
}

// Prints new complaints, which state why a file could not be probed; there is one per file.
void Run::report_complaints()
{
    const std::vector<std::string>& complaints = attacher_->complaints();
    for (; complaints_shown_ < complaints.size(); complaints_shown_++)
        warn(complaints[complaints_shown_]);
}

// Prints remarks about files that were overwritten. Returns true if there were any.
bool Run::report_remarks()
{
    const std::vector<std::string> remarks = attacher_->drain_remarks();
    for (const std::string& remark : remarks) {
        warn(remark);
        if (remarks_.size() < remarks_max)
            remarks_.push_back(remark);
    }
    return !remarks.empty();
}

// Attaches to libraries that were mapped since the last attach_waiting().
void Run::attach_waiting()
{
    if (!attacher_)
        return;
    const auto [added, user] = attacher_->attach_waiting();
    report_complaints();
    const bool remarked = report_remarks();
    if (waiting_ && user) {
        waiting_ = false;
        withdraw(waiting_message_);
        warn(fmt::format("process {} maps a CUDA library now; tracing", *user));
    }
    if (!added && !remarked)
        return;
    print_summary();
    print_attached();
}

void Run::watch_processes()
{
    loop_->watch(mapping_watch_->descriptor(), [this] {
        mapping_watch_->drain();
        attach_waiting();
    });
    if (attacher_)
        loop_->watch(attacher_->descriptor(), [this] { attach_waiting(); });
    auto drain = [this] { more_records_ = ring_->drain(); };
    loop_->watch(ring_->descriptor(), drain);
    // Polls, because the kernel side sends most records without a wake-up (bpf/base/common.bpf.h). Event lines (-e)
    // should be printed promptly; other records are needed only for the next report, which drains the ring itself.
    loop_->every(plan_.lines ? 100ms : 150ms, [this, drain] {
        drain();
        attach_waiting(); // attaches to libraries whose scan was postponed
    });
    loop_->every(1s, [this] {
        if (const auto& cgroup = scope_.cgroup(); cgroup && cgroup->is_removed()) {
            warn(fmt::format("cgroup {} was removed", cgroup->argument()));
            loop_->stop();
        } else {
            members_->tick();
            attach_waiting();
        }
        if (attacher_)
            attacher_->release_unused();
        tick();
    });
    loop_->before_wait([this] {
        if (more_records_)
            more_records_ = ring_->drain();
        output_->flush();
        return more_records_;
    });
}

void Run::watch_targets()
{
    for (auto& [target, fd] : scope_.pidfds()) {
        loop_->watch(fd.get(), [this, pid = target, descriptor = fd.get()] {
            loop_->remove(descriptor);
            if (!scope_.on_exit(pid))
                return loop_->stop(); // no target is left; finish() prints the last report before the slow detach
            bpf_map_delete_elem(bpf_object__find_map_fd_by_name(opened_.object, "target_pids"), &pid);
            if (attacher_)
                attacher_->forget(pid);
        });
    }
}

void Run::set_timers()
{
    if (const auto interval = options_.interval ? options_.interval : plan_.usual_interval)
        loop_->every(*interval, [this] {
            report();
            if (options_.count && reports_ >= options_.count)
                loop_->stop();
        });
    if (const auto duration = options_.duration ? options_.duration : plan_.usual_duration)
        loop_->after(*duration, [this] { loop_->stop(); });
}

void Run::tick()
{
    if (loop_)          // output has started
        ring_->drain(); // reads an exited process's records before its exit is processed
    // Keeps the state of exited targets, because the last report shows the memory that they held.
    if (loop_ && targets_ended())
        return loop_->stop();
    const bool arm = tool_.tick(*output_);
    if (KernelHooks* hooks = opened_.kernel_hooks; hooks && loop_ && hooks->hook_new_drivers()) {
        if (waiting_ && !attacher_ && hooks->waits_for().empty()) {
            waiting_ = false;
            withdraw(waiting_message_);
            warn("a GPU driver has been loaded; tracing");
        }
        print_summary();
        print_attached();
    }
    if (!attacher_ || arm == attacher_->name_probes_attached())
        return;
    if (arm) {
        // Finds CUDA runtimes in libraries that were mapped after the driver. Not needed at the start, when all
        // processes have just been scanned.
        if (loop_)
            attacher_->scan_all();
        *opened_.switches.naming = true;
    }
    attacher_->attach_name_probes(arm);
    if (!arm)
        *opened_.switches.naming = false;
}

void Run::report()
{
    ring_->drain();
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (plan_.hooks.before_print)
        plan_.hooks.before_print();
    ring_->drain(); // the rows of new processes may need names that are still in the ring
    const uint64_t wall_ns = clock_ns(CLOCK_REALTIME);
    tool_.print(*output_, wall_ns, now - interval_began_ns_);
    if (plan_.hooks.after_print)
        plan_.hooks.after_print(*output_);
    if (!plan_.lines)
        end_report(wall_ns, now - interval_began_ns_);
    losses_->add(LOSS_CALLERS, tool_.calls_differing());
    if (plan_.hooks.names_lost)
        losses_->add(LOSS_NAME, plan_.hooks.names_lost());
    output_->lost(losses_->since_last());
    interval_began_ns_ = now;
    reports_++;
}

void Run::end_report(uint64_t wall_ns, uint64_t length_ns)
{
    output_->end_report(
        [this, length_ns] {
            EmptyReport report{.noun = plan_.noun, .length = std::chrono::nanoseconds(length_ns)};
            if (const auto& cgroup = scope_.cgroup())
                report.cgroup = cgroup->argument();
            if (attacher_) {
                report.users = members_->users().size();
                report.named_alone = scope_.named().has_value();
                report.some_unreadable = attacher_->unreadable() && !has_capability(CAP_SYS_PTRACE);
                report.unreadable_files = attacher_->unreadable_files();
            }
            report.target_ended = targets_ended();
            report.driver_missing = opened_.kernel_hooks && !opened_.kernel_hooks->waits_for().empty();
            return sentence(report, options_);
        },
        wall_ns);
}

// Prints the records that are left. After a signal, stops after 300 ms, even if the buffer is not empty.
void Run::drain_rest()
{
    if (!ring_->drain(signals_.arrived() ? 300ms : std::chrono::hours(1)))
        return;
    const Loss unread{"records_unread", "records were still in the ring buffer when a signal ended the run: not shown",
                      ring_->drop()};
    output_->lost({&unread, 1});
}

// Prints the last results before the slow detach, so that Ctrl-C seems to act at once.
void Run::finish()
{
    drain_rest();
    if (!options_.count || reports_ < options_.count) {
        if (plan_.hooks.before_last_report)
            plan_.hooks.before_last_report(signals_.arrived() ? 200ms : 1000ms);
        report();
    }
    if (plan_.lines)
        end_report(clock_ns(CLOCK_REALTIME), clock_ns(CLOCK_MONOTONIC) - started_ns_);
    output_->end(clock_ns(CLOCK_MONOTONIC) - started_ns_);
    output_->flush();
    if (plan_.hooks.check_results)
        plan_.hooks.check_results();
    end_tool();
}

void Run::end_tool()
{
    if (plan_.hooks.end)
        plan_.hooks.end();
}

void Run::progress(std::string_view step)
{
    if (plan_.hooks.progress)
        plan_.hooks.progress(step);
}

} // namespace gpusnoop
