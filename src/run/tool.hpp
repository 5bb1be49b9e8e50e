// SPDX-License-Identifier: Apache-2.0
// Base class of the tools: what a tool tells its run, what the run calls it for, and what it may ask of the run.
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

// Probes in user memory, which can be taken away from processes and given back (Attacher).
struct PausableProbes {
    Tier tier;
    std::function<pid_t(pid_t pid)> group_of; // 0 where all processes have the same probes, else the process
    std::function<void(pid_t group)> pause;   // those of programs that are sampled
    std::function<void(pid_t group)> resume;
};

// What a tool may ask of the run that it is in.
struct Running {
    Loop& loop;                                // what else the tool waits for, it may add
    uint64_t since_ns;                         // CLOCK_BOOTTIME: by then, what was there had its probes
    std::function<void()> report;              // makes one now
    std::function<std::string()> attached;     // "589 functions in 2 files, session"
    std::function<uint64_t()> lost;            // of everything, since the start
    std::function<std::vector<pid_t>()> users; // those asked for that have mapped what counts
    std::optional<PausableProbes> probes{};    // nullopt where nothing in user memory is probed
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

// Hooks that few tools need; most leave them empty.
struct RunHooks {
    std::function<std::unique_ptr<Output>()> make_output{}; // in place of text or JSON on standard output
    std::function<void(EndingSignals&)> replay{};           // in place of printing the tables of a recording
    std::function<void(std::string_view step)> progress{};  // a slow step begins: "Loading 40 programs ..."
    // Called in turn: all probes are attached, the loop is about to run.
    std::vector<std::function<void(const Running&)>> begin{};
    // A process was replaced by exec, or has exited. Called before the functions of Tool.
    std::function<void(pid_t pid, uint64_t time_ns)> on_exec{};
    std::function<void(pid_t pid)> on_exit{};
    std::function<void()> before_print{}; // reads what the kernel side has counted up to now
    std::function<void(Output&)> after_print{};
    // The last report follows; what makes it better may take at most this long.
    std::function<void(std::chrono::milliseconds)> before_last_report{};
    std::function<void()> check_results{}; // after the last report; throws Error if a result was not written
    std::function<void()> end{};           // there will be no more reports; detaching, which is slow, follows
    // Since the last call: kernels whose name a report needed, but the ring buffer had no room for (KernelNames).
    std::function<uint64_t()> names_lost{};
};

// What a run does, once its options are known.
struct RunPlan {
    std::string traced;              // what the banner names: "kernel launches"
    std::string noun;                // of that: "launch", for "no launch in 5 s"
    std::vector<Program> programs{}; // none: nothing in user memory is probed
    bool durations = false;          // are shown; the probes' own share of them is measured and shown, too
    bool needs_returns = false;      // the results are worth nothing without return probes
    bool by_process = false;         // probes may come and go one process at a time (Attacher::pause())
    bool counts_runtime = false;     // its calls are counted, not only marked to learn names
    // How often it reports where nobody has said; nullopt: once, at the end.
    std::optional<std::chrono::nanoseconds> usual_interval{};
    std::optional<std::chrono::nanoseconds> usual_duration{}; // ends the run if there is no -d
    std::string nvml_library{};                               // as in NvmlFigures
    bool screen = false;                                      // the terminal is the tool's own
    bool lines = false;                 // not a table per report; that there was nothing is said of the whole run
    std::optional<ReplayView> replay{}; // how recordings are shown; nullopt: there are no tables to show
    RunHooks hooks{};
};

// Variables of the BPF programs that a run sets while they are attached. Null where the object has none.
struct Switches {
    __u32* attach_phase = nullptr;     // which of two attachments counts (bpf/shared/probe.h)
    __u64* forwarding_files = nullptr; // drivers that share a process (bpf/base/probe.bpf.h)
    __u64* traced_since = nullptr;     // CLOCK_BOOTTIME; 0: processes may have called without being seen
    bool* naming = nullptr;            // the programs that are not always attached, are
};

// A BPF object before it is loaded.
struct Opened {
    bpf_object* object = nullptr;
    Switches switches{};
    KernelHooks* kernel_hooks = nullptr; // what the tool hooks in the kernel, by itself
    std::vector<std::string> remarks{};  // what it does without here, in sentences
};

// A record from the ring buffer, or a line.
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

    // Checks the options. Throws UsageError if they contradict each other.
    virtual RunPlan plan() = 0;
    // Before loading: sets constants and map sizes of the object, and in opened_ what the run needs. Throws Error.
    virtual void configure(const Filters& filters) = 0;
    // After loading, before attaching: makes the readers of the maps. Throws Error.
    virtual void load();
    // Once a second, and once before tracing begins. Returns true while the on-demand naming probes should be attached.
    virtual bool tick(Output&) { return false; }
    // A record from the ring buffer, except those that all tools share.
    virtual void record(Output&, const RingRecord&) {}
    // Prints the interval that ends now.
    virtual void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) = 0;

    // For the run.
    const ToolSpec& spec() const { return spec_; }
    const Options& parse(int argc, char** argv);
    void open();
    const Opened& opened() const { return opened_; }
    void prepare(std::span<const Probe> probes, const Filters& filters); // configures the object
    // Into the kernel; on another thread than all else. together: see load_in_parallel(). Throws Error.
    void load_programs(bool together);
    void begin(const Running& running);
    void receive(Output& output, const void* record, size_t size); // from the ring
    // A process is another program from this moment on, CLOCK_MONOTONIC.
    void on_exec(pid_t pid, uint64_t time_ns);
    // The last thread of a process has exited; its rows are still to be printed.
    void on_exit(pid_t pid) { leaving_.insert(static_cast<uint32_t>(pid)); }
    // Processes whose exit event was lost.
    std::set<pid_t> exits_missed() { return processes_->exited(); }
    uint64_t calls_differing() const; // see UserStacks::mismatches_since_last()

protected:
    CommandLine& command_line() { return *command_line_; }

    Options options_; // as given
    BpfObject bpf_;
    Opened opened_;
    std::span<const Probe> probes_; // those that calls are numbered by
    WaitBudget wait_budget_;        // shared by all helpers of the tool
    std::optional<Processes> processes_;
    UserStacks* user_stacks_ = nullptr; // of a tool that has some, set by load()
    std::optional<Running> running_;    // while it traces
    std::set<uint32_t> leaving_;        // pids that have exited, but may still have their memory

private:
    const ToolSpec& spec_;
    std::unique_ptr<CommandLine> command_line_; // until it is parsed
};

// Where results go without another wish: text or JSON on standard output.
std::unique_ptr<Output> make_output(const Options& options);

} // namespace gpusnoop
