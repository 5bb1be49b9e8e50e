// SPDX-License-Identifier: Apache-2.0
// A tool that counts calls: options, the kernel side's tables, and the life of a row from there to the output. What the
// calls are, and what is shown of them, is the tool's.
#pragma once

#include "base/bpf_map.hpp"
#include "code/inside_search.hpp"
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
    // Calls of a row since the last time: once a second, while their process lives, and before each report.
    virtual void delta(const CallDelta&) {}
    // Processes that have exited, and have been printed.
    virtual void forget(const std::set<ImageId>&) {}

protected:
    // What counts of a row's key, whatever the view tells apart.
    struct KeyParts {
        bool thread = false;
        bool stack = false;
    };
    // settings: the tool's own; not read before the tool's constructor runs.
    CallTool(const ToolSpec& spec, CallSettings& settings) : CallTool(spec, settings, KeyParts()) {}
    CallTool(const ToolSpec& spec, CallSettings& settings, KeyParts key_parts)
        : Tool(spec), settings_(settings), key_parts_(key_parts)
    {}

    // --by, -e, -H, --api, -s. by and measures: what they take beside what all tools have.
    void add_call_options(const std::string& by, const std::string& by_default, const std::string& measures,
                          bool by_stream = true);
    // -l MIN_US. what: "waits".
    void add_least(std::string_view what, uint64_t& least_ns);
    // --max-overhead, of a tool whose plan has programs that can be sampled.
    void add_ceiling();

    // The first and the last step of plan(): checks of the shared options, and what follows from all options. Both
    // throw UsageError.
    RunPlan begin_plan();
    RunPlan finish_plan(RunPlan plan);
    // " of 5ms or longer", for RunPlan::one; empty where there is no least.
    static std::string at_least(uint64_t least_ns, std::string_view more = "longer");
    // Driver, runtime or both, as asked for.
    Layers counted() const;
    // For the banner: "failed copies (driver and runtime)". Also of one, "failed copy".
    std::string traced(std::string_view what) const;
    // Results or durations are shown of the calls that it counts.
    bool follows_calls() const { return settings_.latency || options_.failed_only; }
    // For so many stacks with Python there is room: stacks are asked for, or are the tool's own, and the kernel can
    // follow them.
    bool keeps_stacks() const { return options_.user_stacks || key_parts_.stack; } // of all calls, or of some
    uint32_t python_places() const;

    std::span<const LineField> line_fields_{};   // of -e
    std::function<bool(CallLine&)> fill_line_{}; // adds what the tool knows of a call; false: it has no line
    bool shows_rows_ = true;                     // of calls, at each report
    std::optional<bool> shows_maxima_;           // of durations, in these rows; nullopt: where durations are measured

    // For print(): calls since the last report, and what a table of them needs. settings: the tool's own.
    std::span<const CallDelta> calls();
    template<class Settings>
    CallContext<Settings> call_context(const Settings& settings, uint64_t interval_ns)
    {
        return {options_,    settings,
                processes(), static_cast<double>(interval_ns) / 1e9,
                probes_,     [this](const CallKey& key, const WhoSeen&) { return row_frames(key); }};
    }
    Frames frames(const ImageId& image, int32_t stack, uint64_t caller);
    // The line of the program's own that a call comes from, or the function: "dataset.py:88 Loader.__getitem__".
    std::string calling_line(const ImageId& image, int32_t stack, uint64_t caller);
    std::set<int32_t> keep_stacks(const std::set<int32_t>& stacks) { return stacks_->keep(stacks); } // see UserStacks
    FoundStacks& found_stacks() { return found_stacks_; }

    Processes& processes() { return *processes_; }
    // Processes that have exited, until forget(): after the next report, or at the next tick if no rows are shown.
    const std::set<ImageId>& exited() const { return exited_; }

    Holdings holdings_;                    // of a tool that follows allocations
    std::optional<HeldTable> held_;        // the same
    std::function<void()> before_erase_{}; // of the kernel side's state of processes that have exited

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
    void erase_state(std::span<const ImageId> gone);
    void forget_processes();
    Frames row_frames(const CallKey& key); // none where no stacks were asked for

    CallSettings& settings_;
    KeyParts key_parts_;
    std::string usual_sort_;
    std::vector<std::string> sampled_hooks_;
    bool needs_returns_ = false;
    std::optional<Shares> shares_;
    std::optional<CallTable> table_;
    std::optional<EndedEpochs> epochs_; // of tools that follow where memory is
    std::optional<UserStacks> stacks_;
    std::optional<CodePlaces> places_; // where rows are told apart by them
    FoundStacks found_stacks_;
    std::optional<CallEvents<CallLine, LineContext>> lines_; // with -e
    CallSums pending_;                                       // since the last report
    std::optional<Sampling> sampling_;
    std::set<ImageId> exited_;
};

} // namespace gpusnoop
