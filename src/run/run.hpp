// SPDX-License-Identifier: Apache-2.0
// A run of a tool, after its command line was parsed: load, attach, loop, report.
#pragma once

#include "attach/attach.hpp"
#include "attach/load_plan.hpp"
#include "base/loop.hpp"
#include "output/side_outputs.hpp"
#include "proc/mapping_watch.hpp"
#include "run/mapping_gate.hpp"
#include "run/members.hpp"
#include "run/report_notes.hpp"
#include "run/ring.hpp"
#include "run/tool.hpp"
#include "who/scope.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

class StartedProgram;

class Run {
public:
    // program: the program to start (-- PROGRAM), or null. Throws Error if a target does not exist.
    Run(Tool& tool, Options& options, RunPlan plan, EndingSignals& signals, StartedProgram* program)
        : tool_(tool), options_(options), plan_(std::move(plan)), signals_(signals), program_(program), scope_(options),
          probe_plan_(plan_probes(plan_.programs)), opened_(tool.opened())
    {}
    // Throws Interrupted if a signal arrives before tracing has begun.
    void run();

private:
    void trace();
    std::optional<PausableProbes> pausable_probes();
    bool returns_are_safe() const;
    bool returns_are_safe_for_all() const;
    void attach();
    bpf_object* load();
    bpf_object* load_as(const LoadPlan& plan, bool guarded);
    void load_programs();
    void leave_out_harmful_returns();
    void watch_mappings();
    Filters choose_probes(bpf_object* object, const LoadPlan& plan);
    void library_mapped(pid_t pid, std::string_view path, uint64_t device, uint64_t inode);
    void thread_exited(pid_t pid, pid_t tid);
    void on_exec(pid_t pid, uint64_t time_ns);
    void on_exit(pid_t pid);
    void announce();
    void check_libraries();
    void print_summary();
    void print_attached();
    std::string attached() const;
    void report_complaints();
    bool report_remarks();
    void watch_processes();
    void watch_gate();
    void serve_gate();
    void serve(MappingGate::Event event);
    void watch_targets();
    void set_timers();
    void attach_waiting();
    void tick();
    void report();
    void end_report(uint64_t wall_ns, uint64_t length_ns);
    void finish();
    void end_tool();
    void progress(std::string_view step); // announces a slow step
    void drain_rest();
    std::vector<SideOutput> side_outputs() const;
    bool is_over() const;
    bool targets_ended() const;
    bool gives_up(std::chrono::nanoseconds stalled);

    Tool& tool_;
    Options& options_;
    RunPlan plan_;
    EndingSignals& signals_;
    StartedProgram* program_;
    Scope scope_;
    std::unique_ptr<Output> output_;
    ProbePlan probe_plan_; // contains no return probes if they would kill targets
    bool returns_ = true;  // true if return probes do not kill targets
    bool together_ = true; // true to load programs in parallel
    const Opened& opened_; // the tool's BPF object
    // sentences about programs that the kernel refused, and files that were overwritten
    std::vector<std::string> remarks_;
    std::optional<Attacher> attacher_;
    std::optional<uint64_t> duration_floor_ns_; // probe overhead included in each measured duration
    std::optional<Members> members_;
    std::optional<Losses> losses_;
    std::optional<Ring> ring_;
    std::optional<MappingWatch> mapping_watch_;
    ProcessExits exits_;
    std::optional<Loop> loop_;
    size_t complaints_shown_ = 0;
    bool gate_explained_ = false; // true once a warning has explained why no process waits at the gate
    bool waiting_ = false;        // true while waiting for a process to load a probed library, or for a GPU driver
    std::string waiting_message_;
    bool more_records_ = false; // true if the last drain left records in the ring
    // time at which the output first blocked after the run was over
    std::optional<std::chrono::nanoseconds> over_since_;
    uint64_t started_ns_ = 0;
    uint64_t interval_began_ns_ = 0;
    uint64_t reports_ = 0;
};

} // namespace gpusnoop
