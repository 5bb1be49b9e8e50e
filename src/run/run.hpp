// SPDX-License-Identifier: Apache-2.0
// One run of a tool, from the parsed command line to the last report: load, attach, loop, report.
#pragma once

#include "attach/attach.hpp"
#include "attach/load_plan.hpp"
#include "base/loop.hpp"
#include "output/outputs_beside.hpp"
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
    // Throws where what was asked for does not exist. program: the one to be traced, if it was started for that.
    Run(Tool& tool, Options& options, RunPlan plan, EndingSignals& signals, StartedProgram* program)
        : tool_(tool), options_(options), plan_(std::move(plan)), signals_(signals), program_(program), scope_(options),
          probe_plan_(plan_probes(plan_.programs)), opened_(tool.opened())
    {}
    // Throws Interrupted where a signal came before there was anything to report.
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
    void progress(std::string_view step); // a slow step begins
    void drain_rest();
    std::vector<OutputBeside> outputs_beside() const;
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
    ProbePlan probe_plan_;             // less what cannot be used without harm
    bool returns_ = true;              // return probes can
    bool together_ = true;             // programs are loaded at the same time
    const Opened& opened_;             // by the tool
    std::vector<std::string> remarks_; // what the kernel refused, and files that were overwritten
    std::optional<Attacher> attacher_;
    std::optional<uint64_t> duration_floor_ns_; // of what is measured, the probes' own share
    std::optional<Members> members_;            // who comes and goes
    std::optional<Losses> losses_;
    std::optional<Ring> ring_;
    std::optional<MappingWatch> mapping_watch_;
    ProcessExits exits_;
    std::optional<Loop> loop_;
    size_t complaints_shown_ = 0;
    bool gate_explained_ = false; // why processes do not wait at it
    bool waiting_ = false;
    std::string waiting_message_;                        // that was shown for it
    bool more_records_ = false;                          // than there was time for
    std::optional<std::chrono::nanoseconds> over_since_; // while nobody reads the output
    uint64_t started_ns_ = 0;
    uint64_t interval_began_ns_ = 0;
    uint64_t reports_ = 0;
};

} // namespace gpusnoop
