// SPDX-License-Identifier: Apache-2.0
// Base class of tools that count calls. It defines their shared options, reads the kernel side's table of calls, and
// passes the calls on to the tool. Each tool defines its columns and which calls it counts.
#pragma once

#include "base/bpf_map.hpp"
#include "code/pending_calls.hpp"
#include "names/code_places.hpp"
#include "names/user_stacks.hpp"
#include "rows/call_events.hpp"
#include "rows/call_sums.hpp"
#include "rows/call_view.hpp"
#include "rows/calls.hpp"
#include "rows/held_table.hpp"
#include "rows/holdings.hpp"
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
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void record(Output& output, const RingRecord& record) override;
    // Called with the new calls of each row, once a second and before each report.
    virtual void delta(const CallDelta&) {}
    // Drops the state of exited processes, after their rows were printed.
    virtual void forget(const std::set<ImageId>&) {}

protected:
    // Key fields that the tool always needs, independent of --by.
    struct KeyParts {
        bool thread = false;
        bool stack = false;
    };
    // settings: may be a member of the derived class that is not constructed yet, because this constructor only stores
    // the reference.
    CallTool(const ToolSpec& spec, CallSettings& settings) : CallTool(spec, settings, KeyParts()) {}
    CallTool(const ToolSpec& spec, CallSettings& settings, KeyParts key_parts)
        : Tool(spec), settings_(settings), key_parts_(key_parts)
    {}

    // Adds --by, -e, -H, --api, -s and related options. by: --help text with the values of --by that only this tool
    // has, such as "kernel, ". by_default: default of --by. measures: --help text with all values of -H.
    void add_call_options(const std::string& by, const std::string& by_default, const std::string& measures,
                          bool by_stream = true);
    // Adds -l MIN_US. what: plural noun for --help, such as "waits".
    void add_least(std::string_view what, uint64_t& least_ns);
    // Adds --max-overhead, for tools whose calls can be sampled.
    void add_ceiling();

    // First and last step of a tool's plan(). begin_plan() checks the shared options, and finish_plan() derives the
    // rest of the plan from them. Both throw UsageError.
    RunPlan begin_plan();
    RunPlan finish_plan(RunPlan plan);
    // Text such as " of 5ms or longer", for RunPlan::noun; empty if least_ns is 0.
    static std::string at_least(uint64_t least_ns, std::string_view more = "longer");
    // The layers selected by --api.
    Layers counted() const;
    // Adds the effect of options such as -x and --api to a noun: "copies" may become "failed copies (driver and
    // runtime)". For the banner and RunPlan::noun.
    std::string traced(std::string_view what) const;
    // True if results or durations of calls are shown.
    bool follows_calls() const { return settings_.latency || options_.failed_only; }
    // True if stacks are recorded, either for all calls (-U) or for calls that the tool selects.
    bool keeps_stacks() const { return options_.user_stacks || key_parts_.stack; }
    // Size of the table of Python stacks; 0 if stacks are not recorded, or this kernel cannot walk Python frames.
    uint32_t python_places() const;

    std::span<const LineField> line_fields_{};   // the tool's columns in event lines (-e)
    std::function<bool(CallLine&)> fill_line_{}; // adds the tool's data to a line; returns false to skip the line
    bool shows_rows_ = true;                     // true if reports contain rows of calls
    std::optional<bool> shows_maxima_; // whether rows show the longest duration; nullopt: yes if durations are measured

    // For use in print(): the calls since the last report, and the context for printing them.
    std::span<const CallDelta> calls();
    template<class Settings>
    CallContext<Settings> call_context(const Settings& settings, uint64_t interval_ns)
    {
        return {options_,    settings,
                processes(), static_cast<double>(interval_ns) / 1e9,
                probes_,     [this](const CallKey& key, const WhoSeen&) { return row_frames(key); }};
    }
    Frames frames(const ImageId& image, int32_t stack, uint64_t caller);
    // The line of the user's program that made a call, such as "dataset.py:88 Loader.__getitem__"; only the function if
    // the line is unknown.
    std::string calling_line(const ImageId& image, int32_t stack, uint64_t caller);
    // See UserStacks::keep().
    std::set<int32_t> keep_stacks(const std::set<int32_t>& stacks) { return stacks_->keep(stacks); }
    UnwoundStacks& found_stacks() { return found_stacks_; }

    Processes& processes() { return *processes_; }
    // Exited processes whose state is kept until forget(), which is called after the next report, or at the next tick
    // if the tool shows no rows.
    const std::set<ImageId>& exited() const { return exited_; }

    Holdings holdings_;                    // memory that processes hold; empty unless the tool tracks allocations
    std::optional<HeldTable> held_;        // kernel side's tables of held memory; set if the tool tracks allocations
    std::function<void()> before_erase_{}; // called before the kernel side's state of exited processes is erased

private:
    void check_ceiling(const RunPlan& plan) const;
    void configure_calls() const;
    void size_tables() const;
    void begin_stacks();
    void begin_calls(const Running& running);
    void print_line(Output& output, const call_event& event);
    void spill(const call_event& event);
    void read_rows();
    void pass_on(std::span<const CallDelta> deltas);
    void end_report(Output& output);
    std::vector<ImageId> retire_processes();
    void erase_state(std::span<const ImageId> exited);
    void forget_processes();
    Frames row_frames(const CallKey& key); // stack to print below a row; empty unless rows are grouped by stack

    CallSettings& settings_;
    KeyParts key_parts_;
    std::string usual_sort_;
    std::vector<std::string> sampled_hooks_;
    bool needs_returns_ = false;
    std::optional<Shares> shares_;
    std::optional<CallTable> table_;
    std::optional<EndedEpochs> epochs_; // set if the tool tracks addresses
    std::optional<UserStacks> stacks_;
    std::optional<CodePlaces> places_; // set if rows are grouped by line, function or stack
    UnwoundStacks found_stacks_;
    std::optional<CallEvents<CallLine, LineContext>> lines_; // set with -e
    CallSums pending_;                                       // calls since the last report
    std::optional<Sampling> sampling_;
    std::set<ImageId> exited_;
};

} // namespace gpusnoop
