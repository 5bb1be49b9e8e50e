// SPDX-License-Identifier: Apache-2.0
// The life of a tool: command line, preflight, load, attach, loop, report, exit code. What differs between the tools is
// the Tool below.
#pragma once

#include "attach/attach.hpp"
#include "attach/kernel_hooks.hpp"
#include "attach/probes.hpp"
#include "attach/programs.hpp"
#include "base/ending_signals.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "output/replay.hpp"
#include "reader/wait_budget.hpp"
#include "rows/output.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <linux/types.h>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct bpf_object;

namespace gpusnoop {

class CommandLine;
class Loop;

// What the kernel side has to do by itself.
struct Filters {
    Tier tier = Tier::session;
    bool returns = true;                    // return probes can be used without harm
    bool pids = false;                      // the attach is not limited to them
    bool pids_of_second = false;            // only that to every process is not (Attacher)
    cgroup_controller v1 = CONTROLLER_NONE; // the hierarchy that stands for v1, if any is mounted
    bool cgroups = false;
    bool cgroups_v1 = false;             // they are of that hierarchy
    bool guarded = false;                // programs run on a stack of the CPU's
    std::vector<std::string> left_out{}; // hooks whose programs the kernel refused

    bool has(std::string_view hook) const { return std::ranges::find(left_out, hook) == left_out.end(); }
};

// What a tool may ask of the run that it is in.
struct Running {
    Loop& loop;                                // what else the tool waits for, it may add
    uint64_t since_ns;                         // CLOCK_BOOTTIME: by then, what was there had its probes
    std::function<void()> report;              // makes one now
    std::function<std::string()> attached;     // "589 functions in 2 files, session"
    std::function<uint64_t()> lost;            // of everything, since the start
    std::function<std::vector<pid_t>()> users; // those asked for that have mapped what counts
    Attacher* attacher = nullptr;              // null where nothing in user memory is probed
};

// What is known of a tool before it is asked for anything.
struct ToolSpec {
    std::string_view name;
    std::string_view summary;                                          // one sentence for --help
    std::string_view examples;                                         // and some lines for it
    std::span<const std::string_view> attach_names = tier_names;       // what --attach takes, in the words of its help
    std::string_view without_interval = "if omitted: one, at the end"; // in the words of --help
    uint32_t ring_mb = 8;                                              // of the event buffer, where nobody says
    // What is not known without return probes, where the tool can do without.
    std::string_view without_returns = "fewer kernel names, captures and devices are known";
};

// What a run does, once its options are known.
struct RunPlan {
    std::string traced;              // what the banner names: "kernel launches"
    std::string one;                 // of that: "launch", for "no launch in 5 s"
    std::vector<Program> programs{}; // none: nothing in user memory is probed
    bool durations = false;          // are shown; the probes' own share of them is measured and shown, too
    bool needs_returns = false;      // the results are worth nothing without return probes
    bool by_process = false;         // probes may come and go one process at a time (Attacher::pause())
    bool counts_runtime = false;     // its calls are counted, not only marked to learn names
    // How often it reports where nobody has said; nullopt: once, at the end.
    std::optional<std::chrono::nanoseconds> usual_interval{};
    std::string nvml_library{}; // as in NvmlFigures
    bool screen = false;        // the terminal is the tool's own
    bool lines = false;         // not a table per report; that there was nothing is said of the whole run
};

// Variables of the BPF programs that a run sets while they are attached. Null where the object has none.
struct Switches {
    __u32* attach_phase = nullptr;     // which of two attachments counts (bpf/shared/attach.h)
    __u64* forwarding_files = nullptr; // drivers that share a process (bpf/base/probe.bpf.h)
    __u64* traced_since = nullptr;     // CLOCK_BOOTTIME; 0: processes may have called without being seen
    bool* naming = nullptr;            // the programs that are not always attached, are
};

// A BPF object before it is loaded.
struct Opened {
    bpf_object* object;
    Switches switches{};
    KernelHooks* kernel_hooks = nullptr; // what the tool hooks in the kernel, by itself
    std::vector<std::string> remarks{};  // what it does without here, in sentences
};

class Tool {
public:
    explicit Tool(const ToolSpec& spec) : spec_(spec) {}
    virtual ~Tool() = default;
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;

    const ToolSpec& spec() const { return spec_; }

    virtual void add_options(CommandLine& line) = 0;
    // After parsing: throws UsageError where options contradict each other.
    virtual RunPlan plan(const Options& options) = 0;
    // Where results go: text or JSON on standard output.
    virtual std::unique_ptr<Output> make_output(const Options& options);

    // Does what needs no tracing, where that is all that is asked for. True: there is nothing to be traced.
    virtual bool did_without_tracing(const Options&, EndingSignals&) { return false; }

    // What is shown of a recording (--replay), after plan(). Throws UsageError where that cannot be.
    virtual ReplayView replayed();

    virtual Opened open() = 0;
    // Between open and load: read-only data and map sizes.
    virtual void configure(std::span<const Probe> probes, const Filters& filters) = 0;
    // Into the kernel; on another thread than all else. together: see load_together(). Throws Error.
    virtual void load_programs(bool together) = 0;
    // They are loaded, and their maps are there. Throws Error.
    virtual void load() = 0;
    // What takes long comes next: "Loading 40 programs into the kernel ...".
    virtual void starting(std::string_view) {}
    // The loop is about to run.
    virtual void begin(const Running&) {}

    virtual void record(Output& output, const void* data, size_t size) = 0; // from the ring
    virtual void on_exec(pid_t, uint64_t) {} // a process is another program from this moment on, CLOCK_MONOTONIC
    virtual void on_exit(pid_t) {} // the last thread of a process has exited; its rows are still to be printed
    // Those that on_exit() should have been called for: nobody tells of ends twice.
    virtual std::set<pid_t> exits_missed() { return {}; }
    // Once a second, and once before the start is printed. True where the programs that are not always attached should
    // be.
    virtual bool tick(Output&) { return false; }
    // What has been counted up to now is read, for the report that follows.
    virtual void read_rows() {}
    // Calls since the last time this was asked that are shown with other callers than they had (UserStacks).
    virtual uint64_t calls_differing() { return 0; }
    // Kernels since then that a report needed the name of, which the ring buffer had no room for (KernelNames).
    virtual uint64_t names_lost() { return 0; }
    // The last report follows. What is under way that makes it better may take at most this long.
    virtual void before_last_report(std::chrono::milliseconds) {}
    // Prints the interval that ends now.
    virtual void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) = 0;
    // After the last report. Throws Error if a result of the tool's own could not be written.
    virtual void check_results() {}
    // The last report has been made, or there will be none. What takes long, detaching, comes after it.
    virtual void over() {}

protected:
    WaitBudget wait_budget_; // shared by all helpers of the tool

private:
    const ToolSpec& spec_;
};

// What the command line asks for. Throws UsageError where it makes no sense, and Answer where it asks for help or a
// list.
RunPlan plan_run(int argc, char** argv, Tool& tool, Options& options);

// The life of a process that traces nothing: its exit status, which is what body returns, or 0 where that throws an
// Answer. Whatever else is thrown becomes a sentence.
int run_reader(std::string_view name, const std::function<int()>& body);

// The life of one that traces. Whatever is thrown, by make too, becomes a sentence.
int run_tool(int argc, char** argv, const std::function<std::unique_ptr<Tool>()>& make);

// Fills what every BPF object takes from the shared headers.
template<class Rodata>
void configure_shared(Rodata& data, const Options& options, const Filters& filters)
{
    data.ring_wake_shift = static_cast<uint32_t>(std::countr_zero(uint64_t{options.ring_mb} << 20)) - 3; // an eighth
    data.stack_of_cpu = filters.guarded;
    data.target_tid = static_cast<uint32_t>(options.tid);
    data.filter_pids = filters.pids;
    data.v1_controller = filters.v1;
    data.filter_cgroups = filters.cgroups;
    data.filter_v1 = filters.cgroups_v1;
    char name[16]{}, mask[16]{};
    std::copy_n(options.comm.begin(), std::min<size_t>(options.comm.size(), 15), name);
    std::fill_n(mask, std::min<size_t>(options.comm.size(), 15), '\xff');
    memcpy(const_cast<__u64*>(data.target_comm), name, sizeof(name));
    memcpy(const_cast<__u64*>(data.target_comm_mask), mask, sizeof(mask));
}

// And what those with probes in user memory take.
template<class Rodata>
void configure_probes(Rodata& data, std::span<const Probe> probes, const Filters& filters)
{
    if (probes.size() > std::size(data.probe_rows))
        throw Error("the probe table has more rows than the BPF program can hold");
    for (size_t i = 0; i < probes.size(); i++)
        memcpy(const_cast<probe_row*>(&data.probe_rows[i]), &probes[i].row, sizeof(probe_row));
    data.rows_by_address = filters.tier == Tier::tracefs;
    data.filter_second = filters.pids_of_second;
}

} // namespace gpusnoop
