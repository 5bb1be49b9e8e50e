// SPDX-License-Identifier: Apache-2.0
// The life of a tool: command line, preflight, load, attach, loop, report, exit code. What differs between the tools is
// the Tool below.
#pragma once

#include "attach/attach.hpp"
#include "attach/kernel_hooks.hpp"
#include "attach/probes.hpp"
#include "attach/programs.hpp"
#include "base/bpf_object.hpp"
#include "base/ending_signals.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "output/replay.hpp"
#include "reader/wait_budget.hpp"
#include "rows/output.hpp"
#include "who/processes.hpp"

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

namespace gpusnoop {

class CommandLine;
class LoadError;
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
    BpfObject (*open)() = nullptr;                                     // its BPF object: BpfObject::open<S>
    std::span<const std::string_view> attach_names = tier_names;       // what --attach takes, in the words of its help
    std::string_view without_interval = "if omitted: one, at the end"; // in the words of --help
    uint32_t ring_mb = 8;                                              // of the event buffer, where nobody says
    // What is not known without return probes, where the tool can do without.
    std::string_view without_returns = "fewer kernel names, captures and devices are known";
    // The kernel refused a program. May throw an Error with the reason and a hint; else other ways are tried.
    void (*explain)(const LoadError& error, bpf_object* object) = nullptr;
};

// What a few tools do beside tracing; most need none of it.
struct RunHooks {
    std::function<std::unique_ptr<Output>()> make_output{}; // in place of text or JSON on standard output
    std::function<void(EndingSignals&)> replay{};           // in place of printing the tables of a recording
    std::function<void(std::string_view step)> progress{};  // a slow step begins: "Loading 40 programs ..."
    // The last report follows; what makes it better may take at most this long.
    std::function<void(std::chrono::milliseconds)> before_last_report{};
    std::function<void()> check_results{}; // after the last report; throws Error if a result was not written
    std::function<void()> end{};           // there will be no more reports; detaching, which is slow, follows
    // Since the last call: calls that are shown with other callers than they had (UserStacks), and kernels whose name a
    // report needed, but the ring buffer had no room for (KernelNames).
    std::function<uint64_t()> calls_differing{}, names_lost{};
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
    std::string nvml_library{};         // as in NvmlFigures
    bool screen = false;                // the terminal is the tool's own
    bool lines = false;                 // not a table per report; that there was nothing is said of the whole run
    std::optional<ReplayView> replay{}; // how recordings are shown; nullopt: there are no tables to show
    RunHooks hooks{};
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
    Opened open();
    // Between open and load: read-only data and map sizes.
    void prepare(std::span<const Probe> probes, const Filters& filters);
    // Into the kernel; on another thread than all else. together: see load_together(). Throws Error.
    void load_programs(bool together);
    // They are loaded, and their maps are there. Throws Error.
    virtual void load();
    // The loop is about to run.
    virtual void begin(const Running&);

    virtual void record(Output& output, const void* data, size_t size) = 0; // from the ring
    // A process is another program from this moment on, CLOCK_MONOTONIC.
    virtual void on_exec(pid_t pid, uint64_t time_ns);
    // The last thread of a process has exited; its rows are still to be printed.
    virtual void on_exit(pid_t pid) { leaving_.insert(static_cast<uint32_t>(pid)); }
    // Processes whose exit event was lost.
    std::set<pid_t> exits_missed() { return processes_->ended(); }
    // Once a second, and once before the start is printed. True where the programs that are not always attached should
    // be.
    virtual bool tick(Output&) { return false; }
    // What has been counted up to now is read, for the report that follows.
    virtual void read_rows() {}
    // Prints the interval that ends now.
    virtual void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) = 0;

protected:
    // The object has been opened. What the tool hooks in the kernel by itself, or goes without, is added to `opened`.
    virtual void opened(Opened&) {}
    // The tool's own variables and map sizes, after those that all tools share.
    virtual void configure(const Filters& filters) = 0;

    Options options_; // as plan() got them
    BpfObject bpf_;
    std::span<const Probe> probes_; // those that calls are numbered by
    WaitBudget wait_budget_;        // shared by all helpers of the tool
    std::optional<Processes> processes_;
    std::set<uint32_t> leaving_; // pids that have exited, but may still have their memory

private:
    const ToolSpec& spec_;
};

// Where results go without another wish: text or JSON on standard output.
std::unique_ptr<Output> make_output(const Options& options);

// What the command line asks for. Throws UsageError where it makes no sense, and Answer where it asks for help or a
// list.
RunPlan plan_run(int argc, char** argv, Tool& tool, Options& options);

// The life of a process that traces nothing: its exit status, which is what body returns, or 0 where that throws an
// Answer. Whatever else is thrown becomes a sentence.
int run_reader(std::string_view name, const std::function<int()>& body);

// The life of one that traces. Whatever is thrown, by make too, becomes a sentence.
int run_tool(int argc, char** argv, const std::function<std::unique_ptr<Tool>()>& make);

} // namespace gpusnoop
