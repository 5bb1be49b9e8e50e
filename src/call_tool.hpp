// SPDX-License-Identifier: Apache-2.0
// A tool that counts calls: options, the kernel side's tables, and the life of a row from there to the output. What the
// calls are, and what is shown of them, is the tool's.
#pragma once

#include "call_events.hpp"
#include "call_view.hpp"
#include "calls.hpp"
#include "probe_kinds.hpp"
#include "processes.hpp"
#include "tool.hpp"
#include "user_symbols.hpp"

#include <bpf/libbpf.h>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

class CallTool : public Tool {
public:
    // settings: the tool's own; not looked at before the tool is complete.
    explicit CallTool(CallSettings& settings) : settings_(settings) {}

    void check(const Options& options) override;
    std::span<const Probe> probes() override;
    std::vector<Hook> hooks(std::span<const Probe>) const override { return {}; }
    bool measures_durations() const override { return settings_.latency; }
    bool needs_returns() const override { return settings_.latency || options_.failed_only; }
    bool counts_runtime() const override { return settings_.runtime; }
    void load() override;
    void record(Output& output, const void* data, size_t size) override;
    void report(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    void executed(pid_t pid, uint64_t time_ns) override;
    void exited(pid_t pid) override { leaving_.insert(static_cast<uint32_t>(pid)); }
    bool tick(Output& output) override;

protected:
    // --by, -e, -H, --api, -s. by and measures: what they take beside what all tools have.
    void add_call_options(CLI::App& app, const std::string& by, const std::string& by_default,
                          const std::string& measures);
    // "driver", "runtime" or both, as asked for.
    std::vector<Library> layers() const;
    // What counts of a row's key, whatever the view tells apart.
    struct KeyParts {
        bool thread = false;
        bool stack = false;
    };
    // To be called in configure(): how much of a row's key counts, and how many rows there are.
    void size_tables(bpf_object* object, KeyParts also) const;
    void size_tables(bpf_object* object) const { size_tables(object, {}); }

    virtual void settle() = 0; // after the shared options have been checked: the tool's own; throws UsageError
    virtual std::vector<Probe> choose_probes() const { return {}; }
    virtual int load_skeleton() = 0; // negative errno
    virtual bpf_object* object() = 0;

    virtual void look_at(const CallDelta&) {}                     // each second, while its process lives
    virtual bool shows_rows() const { return !settings_.events; } // of calls, at each report
    virtual void print(Output& output, std::span<const CallDelta> calls, uint64_t wall_ns, double seconds) = 0;
    virtual void print_event(Output& output, const call_event& event) = 0;
    virtual bool learn(uint32_t, const void*, size_t) { return false; } // other records
    virtual void retired(const ImageId&) {}                  // gone; what is known of it is still to be printed
    virtual void forget(const std::set<ImageId>&) {}         // and has been
    virtual void ended(Output&, const std::set<ImageId>&) {} // the same, where no rows are shown
    // Tables of the kernel side whose keys begin with an image, and that only it looks at: those that have entries of
    // one that is gone.
    virtual std::vector<const char*> tables_of(std::span<const ImageId> gone);

    std::vector<std::string> frames(const ImageId& image, int32_t stack, uint64_t caller);
    // Those that an event or a row is printed with: none where no stacks were asked for.
    std::vector<std::string> event_frames(const call_event& event);
    std::vector<std::string> row_frames(const CallKey& key, const WhoSeen& seen);

    Options options_;
    Processes& processes() { return *processes_; }
    const std::set<ImageId>& gone() const { return gone_; } // to be forgotten after the next report
    void collect();                    // what has been counted up to now: look_at() is called for each row
    void settle_ended(Output& output); // where no rows are shown: all that have ended, also since the last tick

private:
    void retire_processes();
    void erase_state(std::span<const ImageId> gone);
    void forget_processes();

    CallSettings& settings_;
    std::vector<Probe> probes_;
    std::optional<CallTable> table_;
    std::optional<Processes> processes_;
    UserSymbols symbols_;
    int stacks_fd_ = -1;
    std::vector<CallDelta> pending_; // since the last report
    std::set<uint32_t> leaving_;     // pids whose first thread has ended
    std::set<ImageId> gone_;
};

// What every BPF object takes from call.bpf.h.
template<class Rodata>
void configure_calls(Rodata& data, const CallSettings& settings, const Options& options)
{
    const CallView& view = settings.view;
    data.per_thread = view.who.thread;
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

} // namespace gpusnoop
