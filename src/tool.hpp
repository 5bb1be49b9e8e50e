// SPDX-License-Identifier: Apache-2.0
// The life of a tool: command line, preflight, load, attach, loop, report, exit code. What differs between the tools is
// the Tool below.
#pragma once

#include "attach.hpp"
#include "error.hpp"
#include "options.hpp"
#include "output.hpp"
#include "probes.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct bpf_object;

namespace gpusnoop {

class Loop;

// What the kernel side has to do by itself.
struct Filters {
    Tier tier = Tier::session;
    bool returns = true;                    // return probes can be used without harm
    bool pids = false;                      // the attach is not limited to them
    cgroup_controller v1 = CONTROLLER_NONE; // the hierarchy that stands for v1, if any is mounted
    bool cgroups = false;
    bool cgroups_v1 = false; // they are of that hierarchy
};

// Programs on functions of the kernel and its modules.
class KernelHooks {
public:
    virtual ~KernelHooks() = default;

    // After load, and each second: hooks what has come since. True where there was anything. Throws Error.
    virtual bool look() = 0;
    // What it waits for, in a sentence; empty where there is something to trace.
    virtual std::string waits_for() const = 0;
    virtual unsigned functions() const = 0;
    virtual std::string ways() const = 0;
    virtual std::vector<std::string> summary() const = 0; // lines for -v
};

// What a tool may ask of the run that it is in.
struct Running {
    Loop& loop;                            // what else the tool waits for, it may add
    std::function<void()> report;          // makes one now
    std::function<std::string()> attached; // "589 functions in 2 files, session"
    std::function<uint64_t()> lost;        // of everything, since the start
};

class Tool {
public:
    virtual ~Tool() = default;

    virtual std::string_view name() const = 0;
    virtual std::string_view summary() const = 0;  // one sentence for --help
    virtual std::string_view examples() const = 0; // the end of --help

    virtual void add_options(CLI::App& app) = 0;
    // After parsing: throws UsageError where options contradict each other.
    virtual void check(const Options& options) = 0;
    // What is being traced, for the banner: "kernel launches".
    virtual std::string traced() const = 0;

    // The rows of the probe table, and which programs serve them. None: nothing in user memory is probed.
    virtual std::span<const Probe> probes() = 0;
    virtual std::vector<Hook> hooks(std::span<const Probe> probes) const = 0;
    // What it hooks in the kernel, by itself; null for most.
    virtual KernelHooks* kernel_hooks() { return nullptr; }
    // What --attach takes, in the words of its help.
    virtual std::span<const std::string_view> attach_names() const { return tier_names; }
    // True where durations are shown; the probes' own share of them is measured and shown, too.
    virtual bool measures_durations() const = 0;
    // True where the results are worth nothing without return probes.
    virtual bool needs_returns() const = 0;
    // What is not known without them, where it can do without.
    virtual std::string_view without_returns() const
    {
        return "kernel names, captures and devices are known less often";
    }
    // True where calls of the runtime are counted, not only marked to learn names.
    virtual bool counts_runtime() const = 0;

    // Where results go: text or JSON on standard output.
    virtual std::unique_ptr<Output> make_output(const Options& options);
    // How often it reports where nobody has said; nullopt: once, at the end.
    virtual std::optional<std::chrono::nanoseconds> usual_interval() const { return std::nullopt; }

    virtual bpf_object* open() = 0; // the skeleton
    // Between open and load: read-only data and map sizes.
    virtual void configure(const Options& options, std::span<const Probe> probes, const Filters& filters) = 0;
    virtual void load() = 0; // throws Error

    virtual void record(Output& output, const void* data, size_t size) = 0; // from the ring
    // Prints the interval that ends now. last: nothing comes after it.
    virtual void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) = 0;
    virtual void executed(pid_t, uint64_t) {} // a process is another program from this moment on, CLOCK_MONOTONIC
    virtual void exited(pid_t) {} // a process has ended, or its first thread has; its rows are still to be printed

    // Once a second, and once before the start is printed. True where the hooks that are not armed from the start
    // should be attached now.
    virtual bool tick(Output&) { return false; }
    virtual void armed(bool) {} // before they are attached and after they are detached

    // The loop is about to run.
    virtual void begin(const Running&) {}
    // The last report has been made. What takes long, detaching, comes after it.
    virtual void over() {}

    // The probes have been attached a second time (Attacher); from here on these count, in place of the first.
    virtual void attached_again() = 0;
};

int run_tool(int argc, char** argv, Tool& tool);

// Fills what every BPF object takes from the shared headers.
template<class Rodata>
void configure_shared(Rodata& data, const Options& options, const Filters& filters)
{
    data.ring_wake_shift = static_cast<uint32_t>(std::countr_zero(uint64_t{options.ring_mb} << 20)) - 3; // an eighth
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
        throw Error("the probe table has more rows than the BPF program has room for");
    for (size_t i = 0; i < probes.size(); i++)
        memcpy(const_cast<probe_row*>(&data.probe_rows[i]), &probes[i].row, sizeof(probe_row));
    data.rows_by_address = filters.tier == Tier::tracefs;
}

} // namespace gpusnoop
