// SPDX-License-Identifier: Apache-2.0
// Loading of a tool's BPF programs, and the fallbacks if the kernel refuses some of them.
#include "attach/programs.hpp"
#include "base/error.hpp"
#include "bpf/shared/probe.h"
#include "proc/process.hpp"
#include "run/preflight.hpp"
#include "run/run.hpp"
#include "run/started_program.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <future>
#include <iterator>
#include <utility>

namespace gpusnoop {
namespace {

using namespace std::chrono_literals;

size_t programs_to_load(bpf_object* object)
{
    size_t count = 0;
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object)
        count += bpf_program__autoload(program);
    return count;
}

// Minimizes the size of a table that this run does not use.
void leave_empty(bpf_object* object, const char* name)
{
    if (bpf_map* table = bpf_object__find_map_by_name(object, name))
        bpf_map__set_max_entries(table, 1);
}

} // namespace

// True if return probes cannot kill a target. On some kernels, they kill processes with a seccomp filter
// (attach/tier.hpp).
bool Run::returns_are_safe() const
{
    if (!scope_.pids().empty() && std::ranges::none_of(scope_.pids(), has_seccomp_filter))
        return true;
    return !return_probes_break_seccomp();
}

// True if return probes cannot kill any process on the machine, so that probes may be attached system-wide.
bool Run::returns_are_safe_for_all() const
{
    if (std::ranges::none_of(probe_plan_.hooks, &Hook::returns))
        return true;
    try {
        return !return_probes_break_seccomp();
    } catch (const Error&) {
        return false;
    }
}

// Removes the return probes from the plan if they would kill a target.
void Run::leave_out_harmful_returns()
{
    returns_ = probe_plan_.probes.empty() || returns_are_safe();
    if (returns_)
        return;
    const char* why = "return probes kill processes under seccomp (most containers) on this kernel, "
                      "which lacks commit cf6cb56ef244";
    if (plan_.needs_returns)
        throw Error(fmt::format("this run needs return probes, and {}", why),
                    "update the kernel, leave out the options for latencies and results, or trace only processes "
                    "without a seccomp filter (-p)");
    warn(fmt::format("{}; without them, {}", why, tool_.spec().without_returns));
    std::erase_if(probe_plan_.hooks, [](const Hook& hook) { return hook.returns; });
}

// Loads the tool's programs. If the kernel refuses one, tries another tier or fewer programs. Throws LoadError if
// nothing is left to try.
bpf_object* Run::load()
{
    const bool forced = !options_.attach.empty() && !probe_plan_.probes.empty();
    const Tier best = probe_plan_.probes.empty() ? Tier::perf : best_tier();
    const Tier tier = forced ? tier_from_name(options_.attach) : best;
    if (tier < best) // checked before loading, whose error message would be about a BPF program, not the tier
        throw Error(fmt::format("this kernel cannot attach by {}", tier_name(tier)),
                    "leave out --attach: the best way that works is then chosen");
    LoadPlan plan(tier, forced);
    bool guarded = false;
    together_ = !options_.info; // after a parallel load, libbpf would report the size of a stub (--info)
    for (;;) {
        signals_.check();
        try {
            bpf_object* object = load_as(plan, guarded);
            if (!guarded && may_use_private_stack(object)) {
                verbose("BPF programs may run on a per-CPU stack: loading them again with preemption disabled");
                guarded = true;
                attacher_.reset();
                continue;
            }
            remarks_ = plan.remarks(probe_plan_.hooks);
            std::ranges::copy(opened_.remarks, std::back_inserter(remarks_));
            std::ranges::for_each(remarks_, warn);
            return object;
        } catch (const LoadError& error) {
            verbose(error.what());
            attacher_.reset();
            if (std::exchange(together_, false))
                continue; // loading them one by one shows which program is refused, and why
            if (!plan.step(error.refusal(), probe_plan_.hooks))
                throw LoadError(plan.cause());
        }
    }
}

bpf_object* Run::load_as(const LoadPlan& plan, bool guarded)
{
    tool_.open();
    bpf_object* object = opened_.object;
    Filters filters =
        probe_plan_.probes.empty() ? Filters{.pids = !scope_.pids().empty()} : choose_probes(object, plan);
    filters.guarded = guarded;
    filters.left_out = plan.hooks_left_out(probe_plan_.hooks);
    if (const auto& cgroup = scope_.cgroup()) {
        filters.cgroups = true;
        filters.cgroups_v1 = !cgroup->v2();
        filters.v1 = cgroup->controller();
    }
    if (filters.v1 == CONTROLLER_NONE)
        filters.v1 = v1_controller(cgroup_mounts(options_.host_root));
    tool_.prepare(probe_plan_.probes, filters);
    // after prepare(), to override the tool's choice of programs
    for (const std::string& program : plan.programs_left_out())
        bpf_program__set_autoload(bpf_object__find_program_by_name(object, program.c_str()), false);
    bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "ring"), options_.ring_mb << 20);
    if (!filters.cgroups)
        leave_empty(object, "cgroup_verdicts");
    if (filters.tier != Tier::tracefs)
        leave_empty(object, "rows_by_place");
    if (scope_.grows())
        Family::make_room(object);
    check_descriptors(object, scope_.pidfds().size());
    progress(fmt::format("Loading {} programs into the kernel ...", programs_to_load(object)));
    const ExitOnSignal for_the_verifier_takes_its_time;
    load_programs();
    tool_.load();
    return object;
}

// Loads the programs on another thread, and scans processes meanwhile. The scan runs on this thread, because helpers
// end when the thread that created them ends.
void Run::load_programs()
{
    // `deferred`: if no thread can be created, the programs are loaded in get() below.
    auto loaded = std::async(std::launch::async | std::launch::deferred, [this] { tool_.load_programs(together_); });
    if (attacher_ && scope_.is_unfiltered() && !options_.info) {
        watch_mappings();
        attacher_->scan_at_start();
    }
    while (attacher_ && loaded.wait_for(20ms) == std::future_status::timeout)
        attacher_->yield_to_writers();
    loaded.get();
}

// Creates the attacher, and determines which filters the BPF programs must apply. Called between open and load.
Filters Run::choose_probes(bpf_object* object, const LoadPlan& plan)
{
    const Tier tier = plan.tier();
    const bool filter_at_attach = tier > Tier::multi || multi_filters_processes();
    // With perf events and tracefs, the programs must filter by pid too, because a forked child inherits the
    // breakpoints of its parent's address space.
    const bool has_pids = !scope_.pids().empty();
    const bool filter_pids = has_pids && (tier > Tier::multi || !filter_at_attach || scope_.grows());
    if (!filter_at_attach)
        scope_.named().reset(); // all processes get probes, so those selected by -n need not be found; the BPF programs
                                // filter by name
    attacher_.emplace(
        object, probe_plan_.probes, plan.hooks(probe_plan_.hooks), scope_,
        Attacher::Options{
            .tier = tier,
            .count_runtime = plan_.counts_runtime,
            .filter_at_attach = filter_at_attach,
            .step = [this] { signals_.check(); },
            .attaching =
                [this](size_t functions, const std::string& path) {
                    if (!loop_)
                        progress(fmt::format("Attaching to {} functions of {} ...", functions, path));
                },
            .by_process = plan_.by_process,
            .release =
                [this](uint64_t id) {
                    if (program_ && program_->gate())
                        program_->gate()->release(id);
                },
            .set_phase = [this](attach_phase phase) { *opened_.switches.attach_phase = phase; },
            .set_forwarding_files = [this](uint64_t files) { *opened_.switches.forwarding_files = files; },
            .filter_second = has_pids && !filter_pids,
            .may_attach_system_wide = [this] { return returns_are_safe_for_all(); }});
    return {.tier = tier, .returns = returns_, .pids = filter_pids, .pids_of_second = has_pids && !filter_pids};
}

} // namespace gpusnoop
