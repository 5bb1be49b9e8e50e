// SPDX-License-Identifier: Apache-2.0
// Base class of the tools, and the data that a tool and its run exchange.
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
    bool returns = true;                    // return probes kill no target
    bool pids = false;                      // filter by pid: the probes are not limited to the targets
    bool pids_of_second = false;            // filter by pid in the system-wide attachment only (Attacher)
    cgroup_controller v1 = CONTROLLER_NONE; // cgroup v1 hierarchy that identifies a process, if one is mounted
    bool cgroups = false;
    bool cgroups_v1 = false;             // the filter's cgroups are in the v1 hierarchy
    bool guarded = false;                // programs run on a per-CPU stack, so they must not be preempted
    std::vector<std::string> left_out{}; // hooks whose programs the kernel refused

    bool has(std::string_view hook) const { return std::ranges::find(left_out, hook) == left_out.end(); }
};

// User-space probes that can be removed from a process and restored (Attacher).
struct PausableProbes {
    Tier tier;
    std::function<pid_t(pid_t pid)> group_of; // the process, or 0 if all processes share their probes
    std::function<void(pid_t group)> pause;   // removes the probes of sampled programs
    std::function<void(pid_t group)> resume;
};

// Services of a run for its tool.
struct Running {
    Loop& loop;                                // the tool may add descriptors and timers
    uint64_t since_ns;                         // CLOCK_BOOTTIME when all running processes had their probes
    std::function<void()> report;              // prints a report now
    std::function<std::string()> attached;     // "589 functions in 2 files, session"
    std::function<uint64_t()> lost;            // losses of all kinds since the start
    std::function<std::vector<pid_t>()> users; // processes in scope that map a probed library
    std::optional<PausableProbes> probes{};    // nullopt if the tool has no user-space probes
};

// Constant properties of a tool.
struct ToolSpec {
    std::string_view name;
    std::string_view summary;                                          // one sentence, for --help
    std::string_view examples;                                         // a few lines, for --help
    BpfObject (*open)() = nullptr;                                     // its BPF object: BpfObject::open<S>
    std::span<const std::string_view> attach_names = tier_names;       // values of --attach
    std::string_view without_interval = "if omitted: one, at the end"; // --help: reports printed without INTERVAL
    uint32_t ring_mb = 8;                                              // default of --ring-mb
    // The price of tracing without return probes, for tools that can.
    std::string_view without_returns = "fewer kernel names, captures and devices are known";
    // The kernel refused a program. May throw an Error with the reason and a hint; otherwise the run tries other tiers.
    void (*explain)(const LoadError& error, bpf_object* object) = nullptr;
};

// Optional hooks; most tools leave them empty.
struct RunHooks {
    std::function<std::unique_ptr<Output>()> make_output{}; // replaces text or JSON on standard output
    std::function<void(EndingSignals&)> replay{};           // replaces printing the tables of a recording
    std::function<void(std::string_view step)> progress{};  // a slow step begins: "Loading 40 programs ..."
    // Called in this order once all probes are attached, just before the loop runs.
    std::vector<std::function<void(const Running&)>> begin{};
    // A process called exec, or exited. Called before the functions of Tool.
    std::function<void(pid_t pid, uint64_t time_ns)> on_exec{};
    std::function<void(pid_t pid)> on_exit{};
    std::function<void()> before_print{}; // reads the kernel side's counts
    std::function<void(Output&)> after_print{};
    // The last report follows. Completing its data may take at most this long.
    std::function<void(std::chrono::milliseconds)> before_last_report{};
    std::function<void()> check_results{}; // after the last report; throws Error if a result was not written
    std::function<void()> end{};           // no report follows, but a slow detach does
    // Kernel names that a report needed but the ring buffer had no room for, since the last call (KernelNames).
    std::function<uint64_t()> names_lost{};
};

// A run as its options define it.
struct RunPlan {
    std::string traced;              // for the banner: "kernel launches"
    std::string noun;                // of that: "launch", for "no launch in 5 s"
    std::vector<Program> programs{}; // empty: no user-space probes
    bool durations = false;          // shows durations, so the probes' share of them is measured and shown
    bool needs_returns = false;      // results are useless without return probes
    bool by_process = false;         // probes can be paused one process at a time (Attacher::pause())
    bool counts_runtime = false;     // counts runtime calls; otherwise they only provide kernel names
    // Default of INTERVAL; nullopt: one report, at the end.
    std::optional<std::chrono::nanoseconds> usual_interval{};
    std::optional<std::chrono::nanoseconds> usual_duration{}; // default of -d
    std::string nvml_library{};                               // see NvmlFigures
    bool screen = false;                                      // the tool draws on the terminal itself
    bool lines = false;                 // prints lines, not tables; an empty result is reported once, at the end
    std::optional<ReplayView> replay{}; // how --replay shows recordings; nullopt: not supported
    RunHooks hooks{};
};

// Variables of the BPF programs that a run sets while they are attached. Null if the object lacks the variable.
struct Switches {
    __u32* attach_phase = nullptr;     // which of two attachments counts (bpf/shared/probe.h)
    __u64* forwarding_files = nullptr; // drivers that share a process (bpf/base/probe.bpf.h)
    __u64* traced_since = nullptr;     // CLOCK_BOOTTIME since which no call was missed; 0: unknown
    bool* naming = nullptr;            // the on-demand naming programs are attached
};

// A BPF object before it is loaded.
struct Opened {
    bpf_object* object = nullptr;
    Switches switches{};
    KernelHooks* kernel_hooks = nullptr; // kernel functions that the tool hooks itself
    std::vector<std::string> remarks{};  // features that this kernel lacks, one sentence each
};

// A record from the ring buffer, or a line of -e.
struct RingRecord {
    uint32_t type; // RECORD_*
    const void* data;
    size_t size;

    // Null if the record is of another type.
    template<class T>
    const T* as(uint32_t wanted) const
    {
        return type == wanted && size >= sizeof(T) ? static_cast<const T*>(data) : nullptr;
    }
};

// A tool's constructor adds its options to command_line(). Everything else is a hook: a virtual function, or an entry
// of RunHooks. An override also calls the function of its base class.
class Tool {
public:
    explicit Tool(const ToolSpec& spec);
    virtual ~Tool();
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;

    // Checks the options. Throws UsageError if they conflict.
    virtual RunPlan plan() = 0;
    // Before loading: sets constants and map sizes of the object, and fills opened_. Throws Error.
    virtual void configure(const Filters& filters) = 0;
    // After loading, before attaching: creates the readers of the maps. Throws Error.
    virtual void load();
    // Once a second, and once before tracing begins. Returns true while the on-demand naming probes should be attached.
    virtual bool tick(Output&) { return false; }
    // A record of the tool's own types.
    virtual void record(Output&, const RingRecord&) {}
    // Prints the report of the interval that ends now.
    virtual void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) = 0;

    // Called by the run.
    const ToolSpec& spec() const { return spec_; }
    const Options& parse(int argc, char** argv);
    void open();
    const Opened& opened() const { return opened_; }
    void prepare(std::span<const Probe> probes, const Filters& filters); // configures the object
    // Loads the programs into the kernel; runs on a thread of its own. together: see load_in_parallel(). Throws Error.
    void load_programs(bool together);
    void begin(const Running& running);
    void receive(Output& output, const void* record, size_t size); // from the ring
    // time_ns: CLOCK_MONOTONIC of the exec.
    void on_exec(pid_t pid, uint64_t time_ns);
    // The last thread of a process has exited. Its rows are still to be printed.
    void on_exit(pid_t pid) { leaving_.insert(static_cast<uint32_t>(pid)); }
    // Processes whose exit event was lost.
    std::set<pid_t> exits_missed() { return processes_->exited(); }
    uint64_t calls_differing() const; // see UserStacks::mismatches_since_last()

protected:
    CommandLine& command_line() { return *command_line_; }

    Options options_;
    BpfObject bpf_;
    Opened opened_;
    std::span<const Probe> probes_; // call_key::function is an index here, plus 1
    WaitBudget wait_budget_;        // shared by all helpers of the tool
    std::optional<Processes> processes_;
    UserStacks* user_stacks_ = nullptr; // set by the load() of tools that read stacks
    std::optional<Running> running_;    // set while tracing
    std::set<uint32_t> leaving_;        // pids that have exited but may still have their memory

private:
    const ToolSpec& spec_;
    std::unique_ptr<CommandLine> command_line_; // until it is parsed
};

// The default output: text or JSON on standard output.
std::unique_ptr<Output> make_output(const Options& options);

} // namespace gpusnoop
