// SPDX-License-Identifier: Apache-2.0
// Base class of all tools, and the data that a tool exchanges with its run.
#pragma once

#include "attach/probes.hpp"
#include "attach/programs.hpp"
#include "attach/tier.hpp"
#include "base/bpf_object.hpp"
#include "base/ending_signals.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
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
class UserStacks;

// Filters and limits that the BPF programs must apply themselves.
struct Filters {
    Tier tier = Tier::session;
    bool returns = true; // false if this kernel's return probes would kill a target (attach/tier.hpp)
    bool pids = false;   // filter by pid, because other processes have the probes too
    // if true, only programs of the second attachment (COOKIE_SECOND) filter by pid, because only their probes are
    // system-wide
    bool pids_of_second = false;
    // controller of the cgroup v1 hierarchy from which cgroup ids and paths are read; CONTROLLER_NONE: none
    cgroup_controller v1 = CONTROLLER_NONE;
    bool cgroups = false;
    bool cgroups_v1 = false;             // the cgroup filter refers to the v1 hierarchy
    bool guarded = false;                // disable preemption, because the kernel runs the programs on a per-CPU stack
    std::vector<std::string> left_out{}; // hooks whose programs the kernel refused

    bool has(std::string_view hook) const { return std::ranges::find(left_out, hook) == left_out.end(); }
};

// User-space probes that can be removed from a process and attached again (Attacher).
struct PausableProbes {
    Tier tier;
    std::function<pid_t(pid_t pid)> group_of; // the pid, or 0 if all processes share their probes
    std::function<void(pid_t group)> pause;   // removes the sampled probes
    std::function<void(pid_t group)> resume;
};

// Services that a run provides to its tool.
struct Running {
    Loop& loop;                                // the tool may add descriptors and timers
    uint64_t since_ns;                         // CLOCK_BOOTTIME when attaching ended; 0 if the tool starts the program
    std::function<void()> report;              // prints a report now
    std::function<std::string()> attached;     // text such as "589 functions in 2 files, session"
    std::function<uint64_t()> lost;            // total of all losses since the start
    std::function<std::vector<pid_t>()> users; // processes in scope that map a probed library
    std::optional<PausableProbes> probes{};    // nullopt if the tool has no user-space probes
};

// Constant properties of a tool.
struct ToolSpec {
    std::string_view name;
    std::string_view summary;                                    // one sentence, for --help
    std::string_view examples;                                   // a few lines, for --help
    BpfObject (*open)() = nullptr;                               // opens the tool's BPF object; BpfObject::open<S>
    std::span<const std::string_view> attach_names = tier_names; // values of --attach
    // text for --help about an omitted INTERVAL
    std::string_view without_interval = "default: one report at the end";
    uint32_t ring_mb = 8; // default of --ring-mb
    // For tools that can trace without return probes: the consequences of doing so.
    std::string_view without_returns = "some kernel names, graph captures and devices are unknown";
    // Called if the kernel refused a program. May throw an Error with the reason and a hint; otherwise, the run tries
    // other tiers.
    void (*explain)(const LoadError& error, bpf_object* object) = nullptr;
};

// Optional functions of a tool; most are empty.
struct RunHooks {
    std::function<std::unique_ptr<Output>()> make_output{}; // creates the output that replaces text or JSON on stdout
    std::function<void(EndingSignals&)> replay{}; // called for --replay, instead of printing the recorded tables
    // called when a slow step begins, with a text such as "Loading 40 programs ..."
    std::function<void(std::string_view step)> progress{};
    // Called in the order of the vector when all probes are attached, just before the event loop runs.
    std::vector<std::function<void(const Running&)>> begin{};
    // Called when a process has called exec or has exited, before Tool::on_exec() and Tool::on_exit().
    std::function<void(pid_t pid, uint64_t time_ns)> on_exec{};
    std::function<void(pid_t pid)> on_exit{};
    std::function<void()> before_print{}; // reads the kernel side's counts
    std::function<void(Output&)> after_print{};
    // Called before the last report, to complete its data. The argument is the time limit.
    std::function<void(std::chrono::milliseconds)> before_last_report{};
    // called after the last report; throws Error if a result could not be written
    std::function<void()> check_results{};
    std::function<void()> end{}; // called when no report will follow, before the slow detach
    // Returns the number of kernel names lost since the last call because the ring buffer was full. Counts only names
    // that reports needed (KernelNames).
    std::function<uint64_t()> names_lost{};
};

// Parameters of a run, derived from the options.
struct RunPlan {
    std::string traced;              // name of the traced events in the banner, such as "kernel launches"
    std::string noun;                // singular of `traced`, such as "launch" in "no launch in 5 s"
    std::vector<Program> programs{}; // empty if there are no user-space probes
    bool durations = false;      // durations are shown, so the probe overhead that they include is measured and printed
    bool needs_returns = false;  // without return probes, the tool's output would be useless
    bool by_process = false;     // probes can be paused one process at a time (Attacher::pause())
    bool counts_runtime = false; // runtime calls are counted; otherwise, they only provide kernel names
    // Default of INTERVAL; nullopt means a single report at the end.
    std::optional<std::chrono::nanoseconds> usual_interval{};
    std::optional<std::chrono::nanoseconds> usual_duration{}; // default of -d
    std::string nvml_library{};                               // path or soname of NVML, "off", or empty for the default
    bool screen = false;                                      // the tool draws a screen on the terminal
    bool lines = false; // the tool prints lines, not tables; an empty result is reported once, at the end
    std::optional<ReplayView> replay{}; // how --replay shows recordings; nullopt if not supported
    RunHooks hooks{};
};

// Variables of the BPF programs that a run changes while they are attached. Null if the object has no such variable.
struct Switches {
    __u32* attach_phase = nullptr; // which of two sets of probes counts calls (bpf/shared/probe.h)
    // bit N modulo 64 is set if driver file N shares a process with another driver (bpf/base/probe.bpf.h)
    __u64* forwarding_files = nullptr;
    __u64* traced_since = nullptr; // time (CLOCK_BOOTTIME) since which no call was missed; 0: unknown
    bool* naming = nullptr;        // true while the on-demand naming programs are attached
};

// A BPF object before it is loaded.
struct Opened {
    bpf_object* object = nullptr;
    Switches switches{};
    KernelHooks* kernel_hooks = nullptr; // hooks on kernel functions; null if the tool has none
    std::vector<std::string> remarks{};  // sentences about features that this kernel lacks
};

// A record from the BPF ring buffer, or an event line (-e) from Lines (run/ring.hpp).
struct RingRecord {
    uint32_t type; // RECORD_* (bpf/shared/record.h)
    const void* data;
    size_t size;

    // The record's data if the record has the type `wanted`, else null.
    template<class T>
    const T* as(uint32_t wanted) const
    {
        return type == wanted && size >= sizeof(T) ? static_cast<const T*>(data) : nullptr;
    }
};

// A tool's constructor adds the tool's options to command_line(). The run calls the virtual functions below, and the
// functions in RunHooks. An override must also call the function of its base class.
class Tool {
public:
    explicit Tool(const ToolSpec& spec);
    virtual ~Tool();
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;

    // Called after parsing: checks the options, and returns the plan. Throws UsageError if options conflict.
    virtual RunPlan plan() = 0;
    // Called before loading: sets constants and map sizes of the BPF object, and fills opened_. Throws Error.
    virtual void configure(const Filters& filters) = 0;
    // Called after loading and before attaching: creates the readers of maps. Throws Error.
    virtual void load();
    // Called once a second, and once before tracing begins. Returns true if the on-demand naming probes should be
    // attached.
    virtual bool tick(Output&) { return false; }
    // Called with each record whose type is specific to the tool.
    virtual void record(Output&, const RingRecord&) {}
    // Prints the report of the interval that ends now.
    virtual void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) = 0;

    // The functions below are called by Run.
    const ToolSpec& spec() const { return spec_; }
    const Options& parse(int argc, char** argv);
    void open();
    const Opened& opened() const { return opened_; }
    void prepare(std::span<const Probe> probes, const Filters& filters); // configures the BPF object
    // Loads the programs into the kernel. Called on a thread of its own. together: see load_in_parallel(). Throws
    // Error.
    void load_programs(bool together);
    void begin(const Running& running);
    void receive(Output& output, const void* record, size_t size); // handles a record from the ring buffer
    // time_ns: CLOCK_MONOTONIC of the exec.
    void on_exec(pid_t pid, uint64_t time_ns);
    // Called when the last thread of a process has exited. Keeps the process's rows, because the next report still
    // prints them.
    void on_exit(pid_t pid) { leaving_.insert(static_cast<uint32_t>(pid)); }
    // Processes whose exit event was lost.
    std::set<pid_t> exits_missed() { return processes_->exited(); }
    // Returns the number of repeated stack copies whose callers differ from those in the first copy, which are shown.
    // Counts since this function was last called. See CopiedStacks::mismatches_since_last().
    uint64_t calls_differing() const;

protected:
    CommandLine& command_line() { return *command_line_; }

    Options options_;
    BpfObject bpf_;
    Opened opened_;
    std::span<const Probe> probes_; // call_key::function is an index into this list, plus 1
    WaitBudget wait_budget_;        // limit on the time that the tool waits for all its helpers
    std::optional<Processes> processes_;
    UserStacks* user_stacks_ = nullptr; // set by load() of tools that read stacks
    std::optional<Running> running_;    // set while tracing
    std::set<uint32_t> leaving_;        // pids of exited processes whose memory may not be released yet

private:
    const ToolSpec& spec_;
    std::unique_ptr<CommandLine> command_line_; // null after parse()
};

// The default output: text or JSON on stdout.
std::unique_ptr<Output> make_output(const Options& options);

} // namespace gpusnoop
