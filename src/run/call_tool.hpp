// SPDX-License-Identifier: Apache-2.0
// A tool that counts calls: options, the kernel side's tables, and the life of a row from there to the output. What the
// calls are, and what is shown of them, is the tool's.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/window.h"
#include "code/copy_search.hpp"
#include "names/code_places.hpp"
#include "names/user_stacks.hpp"
#include "rows/call_events.hpp"
#include "rows/call_sums.hpp"
#include "rows/call_view.hpp"
#include "rows/calls.hpp"
#include "rows/ended_epochs.hpp"
#include "run/ring.hpp"
#include "run/sampling.hpp"
#include "run/tool.hpp"
#include "who/processes.hpp"

#include <bpf/libbpf.h>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

class CallTool : public Tool {
public:
    RunPlan plan(const Options& options) override;
    ReplayView replayed() override;
    void load_programs(bool together) override;
    void load() override;
    void begin(const Running& running) override;
    void record(Output& output, const void* data, size_t size) override;
    // Drains the kernel's table of calls: on_delta() is called for each row that has changed. At each tick, between the
    // ends of processes and the erasure of their state; before each report; at the edges of sampling windows.
    void read_rows() override;
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    uint64_t calls_differing() override { return stacks_->others_since_last(); }
    void on_exec(pid_t pid, uint64_t time_ns) override;
    void on_exit(pid_t pid) override { leaving_.insert(static_cast<uint32_t>(pid)); }
    std::set<pid_t> exits_missed() override { return processes_->ended(); }
    bool tick(Output& output) override;

protected:
    // What counts of a row's key, whatever the view tells apart.
    struct KeyParts {
        bool thread = false;
        bool stack = false;
    };
    // settings: the tool's own; not looked at before the tool is complete.
    CallTool(const ToolSpec& spec, CallSettings& settings, KeyParts key_parts)
        : Tool(spec), settings_(settings), key_parts_(key_parts)
    {}

    // --by, -e, -H, --api, -s. by and measures: what they take beside what all tools have.
    void add_call_options(CommandLine& line, const std::string& by, const std::string& by_default,
                          const std::string& measures, bool by_stream = true);
    // -l MIN_US. what: "waits".
    static void add_least(CommandLine& line, std::string_view what, uint64_t& least_ns);
    // --max-overhead, of a tool whose plan has programs that can be sampled.
    void add_ceiling(CommandLine& line);
    // " of 5ms or longer", for RunPlan::one; empty where there is no least.
    static std::string at_least(uint64_t least_ns, std::string_view more = "longer");
    // Driver, runtime or both, as asked for.
    Layers counted() const;
    // For the banner: "failed copies (driver and runtime)". Also of one, "failed copy".
    std::string traced(std::string_view what) const;
    // Results or durations are shown of the calls that it counts.
    bool follows_calls() const { return settings_.latency || options_.failed_only; }
    struct RowSizes { // as the BPF programs have to know them
        uint32_t key_bytes, front_bits, lines;
    };
    RowSizes size_tables(bpf_object* object) const;
    // For so many stacks with Python there is room: stacks are asked for, or are the tool's own, and the kernel can
    // follow them.
    bool keeps_stacks() const { return options_.user_stacks || key_parts_.stack; } // of all calls, or of some
    uint32_t python_places() const;

    // After the shared options have been checked: the tool's own, and what follows from them. Throws UsageError. What
    // the plan has already is right for most tools.
    virtual void validate(RunPlan& plan) = 0;
    virtual bpf_object* object() const = 0;
    virtual int load_object() = 0;      // negative errno
    virtual uint8_t& generation() = 0;  // of rows: the variable of the BPF object
    virtual __u64* captures_open() = 0; // likewise; null: it follows none
    virtual UserStacks::Kernel stacks_of_kernel() = 0;

    virtual void on_delta(const CallDelta&) {} // each second, while its process lives
    virtual void collected() {}                // on_delta() has had them all, as far as there are rows
    virtual bool shows_rows() const { return !settings_.events; }                   // of calls, at each report
    virtual bool shows_maxima() const { return settings_.latency && shows_rows(); } // of durations, in these rows
    virtual void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) = 0;
    virtual void print_event(Output& output, const call_event& event) = 0;
    virtual bool learn(uint32_t, const void*, size_t) { return false; } // other records
    virtual void retired(const ImageId&) {}                  // gone; what is known of it is still to be printed
    virtual void forget(const std::set<ImageId>&) {}         // and has been
    virtual void ended(Output&, const std::set<ImageId>&) {} // the same, where no rows are shown
    // Tables of the kernel side whose keys begin with an image, and that only it looks at: those that have entries of
    // one that is gone. on_delta() has had all its calls.
    virtual std::vector<const char*> tables_of(std::span<const ImageId> gone);

    Frames frames(const ImageId& image, int32_t stack, uint64_t caller);
    // The line of the program's own that a call comes from, or the function: "dataset.py:88 Loader.__getitem__".
    std::string calling_line(const ImageId& image, int32_t stack, uint64_t caller);
    std::set<int32_t> keep_stacks(const std::set<int32_t>& stacks) { return stacks_->keep(stacks); } // see UserStacks
    FoundStacks& found_stacks() { return found_stacks_; }
    // Those that an event or a row is printed with: none where no stacks were asked for.
    Frames event_frames(const call_event& event);
    Frames row_frames(const CallKey& key);

    Options options_;
    std::span<const Probe> probes() const { return probes_; } // those that calls are numbered by
    Processes& processes() { return *processes_; }
    const std::set<ImageId>& gone() const { return gone_; } // to be forgotten after the next report
    void print_ended(Output& output); // where no rows are shown: all that have ended, also since the last tick

    std::span<const Probe> probes_;

private:
    void check_ceiling(const RunPlan& plan) const;
    void begin_stacks();
    void spill(const call_event& event);
    void pass_on(std::span<const CallDelta> deltas);
    std::vector<ImageId> retire_processes();
    void erase_state(std::span<const ImageId> gone);
    void forget_processes();

    CallSettings& settings_;
    KeyParts key_parts_;
    std::string usual_sort_;
    std::vector<std::string> sampled_hooks_;
    bool needs_returns_ = false;
    std::optional<Shares> shares_;
    std::optional<CallTable> table_;
    std::optional<EndedEpochs> epochs_; // of tools that follow where memory is
    std::optional<Processes> processes_;
    std::optional<UserStacks> stacks_;
    std::optional<CodePlaces> places_; // where rows are told apart by them
    FoundStacks found_stacks_;
    CallSums pending_; // since the last report
    std::optional<Sampling> sampling_;
    std::set<uint32_t> leaving_; // pids that have exited, but may still have their memory
    std::set<ImageId> gone_;
};

// What every BPF object takes from call.bpf.h.
template<class Rodata>
void configure_calls(Rodata& data, const CallSettings& settings, const Options& options)
{
    const CallView& view = settings.view;
    data.per_thread = view.who.thread;
    data.name_threads = view.who.thread;
    data.per_cgroup = view.who.by_owner() || settings.events;
    data.per_stream = view.stream || settings.events;
    data.per_device = view.device;
    data.per_function = view.function || settings.events;
    data.per_stack = options.user_stacks;
    data.emit_events = settings.events;
    data.need_return = settings.latency || options.failed_only;
    data.only_failed = options.failed_only;
    data.measure_latency = settings.latency;
    data.duration_unit_ns = settings.histogram() ? options.unit_ns() : 1;
    if constexpr (requires { data.count_runtime; })
        data.count_runtime = settings.runtime;
}

// The same on its BPF object, whose skeleton is Bpf. Settings is the tool's own.
template<class Bpf, class Settings>
class CallToolOn : public CallTool {
public:
    Opened open() override
    {
        skeleton_ = open_skeleton<Bpf>();
        auto& variables = *skeleton_->bss;
        Opened opened{.object = skeleton_->obj};
        if constexpr (requires { variables.attach_phase; })
            opened.switches.attach_phase = &variables.attach_phase;
        if constexpr (requires { variables.forwarding_files; })
            opened.switches.forwarding_files = &variables.forwarding_files;
        if constexpr (requires { variables.traced_since; })
            opened.switches.traced_since = &variables.traced_since;
        if constexpr (requires { variables.naming; })
            opened.switches.naming = &variables.naming;
        return opened;
    }
    void configure(std::span<const Probe> probes, const Filters& filters) override
    {
        probes_ = probes;
        auto& data = *skeleton_->rodata;
        configure_shared(data, options_, filters);
        if constexpr (requires { data.probe_rows; })
            configure_probes(data, probes, filters);
        configure_calls(data, settings_, options_);
        UserStacks::follow_python(*skeleton_, python_places());
        UserStacks::follow_windows(*skeleton_, options_.user_stacks ? WINDOW_STACKS
                                               : keeps_stacks()     ? WINDOW_SAMPLES
                                                                    : 0);
        const RowSizes sizes = size_tables(skeleton_->obj);
        data.call_key_bytes = sizes.key_bytes;
        data.front_bits = sizes.front_bits;
        data.line_places = sizes.lines;
        data.line_wake = Lines::wake_bits(sizes.lines);
    }

protected:
    explicit CallToolOn(const ToolSpec& spec, KeyParts key_parts = {}) : CallTool(spec, settings_, key_parts) {}

    Settings settings_;
    Skeleton<Bpf> skeleton_;

private:
    bpf_object* object() const final { return skeleton_->obj; }
    int load_object() final { return Bpf::load(skeleton_.get()); }
    uint8_t& generation() final { return skeleton_->bss->generation; }
    __u64* captures_open() final
    {
        auto& variables = *skeleton_->bss;
        if constexpr (requires { variables.captures_open; })
            return &variables.captures_open;
        else
            return nullptr;
    }
    UserStacks::Kernel stacks_of_kernel() final { return UserStacks::kernel_of(*skeleton_, "stacks"); }
};

} // namespace gpusnoop
