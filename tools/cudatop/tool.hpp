// SPDX-License-Identifier: Apache-2.0
// The tool and its state between reports. cudatop.cpp implements start-up and events, report.cpp the reports.
#pragma once

#include "gpu/command_layouts.hpp"
#include "gpu/driver_hooks.hpp"
#include "gpu/xids.hpp"
#include "names/kernel_names.hpp"
#include "names/naming.hpp"
#include "output/metrics.hpp"
#include "run/call_tool.hpp"
#include "tools/cudasync/all_waits.hpp"
#include "tools/cudatop/columns.hpp"
#include "tools/cudatop/counted.hpp"
#include "tools/cudatop/head.hpp"
#include "tools/cudatop/kept_preferences.hpp"
#include "tools/cudatop/live.hpp"
#include "tools/cudatop/name_filter.hpp"
#include "tools/cudatop/stack_samples.hpp"
#include "tools/cudatop/stuck_calls.hpp"
#include "tools/cudatop/verdicts.hpp"
#include "tools/cudatop/within.hpp"
#include "who/cgroup_facts.hpp"

#include "bpf/shared/record.h"
#include "cudatop.skel.h" // must follow the headers of its types

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop::cudatop {

class CudaTop : public CallTool {
public:
    CudaTop();

    RunPlan plan() override;
    void configure(const Filters& filters) override;
    void load() override;
    bool tick(Output& output) override;
    void record(Output& output, const RingRecord& record) override;
    void delta(const CallDelta& delta) override;
    void print(Output& output, uint64_t wall_ns, uint64_t interval_ns) override;
    void forget(const std::set<ImageId>& images) override;

private:
    cudatop_bpf& skeleton() const { return bpf_.as<cudatop_bpf>(); }
    void set_hooks(RunHooks& hooks);
    void choose_driver_hooks();
    void tracing_began(const Running& running);
    void process_replaced(pid_t pid, uint64_t time_ns);
    void process_exited(pid_t pid);
    std::unique_ptr<Output> make_output();
    void replay(EndingSignals& signals);
    void end_screen();
    void learn_xids();
    void sweep_stacks();
    void add_to(Groups& groups, const View& view, const std::set<ImageId>& ended);
    Snapshot snapshot(const std::set<ImageId>& ended);
    void open_row(const std::map<Key, Group>& groups, const Context& context, const std::set<ImageId>& ended,
                  Snapshot& snapshot);
    void show_within(const std::string& id);
    void open_screen();
    void act(const Action& action);
    void track_users();
    void show_users();
    bool measured() const { return counted_.seconds > 0; } // false before the first report
    void scan_earlier_waits();
    void track_stuck_calls();
    void show(const std::set<ImageId>& ended);
    void print_tables(Output& output, const Snapshot& snapshot);
    void print_why(Output& output, const Snapshot& snapshot);
    std::set<ImageId> reported_exits();

    Settings settings_;
    std::optional<DriverHooks> driver_;
    std::optional<DriverLayouts> layouts_;
    std::optional<PendingCalls> pending_calls_;
    std::optional<Xids> xids_;
    std::map<uint32_t, XidsOf> xids_of_; // by pid
    std::optional<NameFilter> name_filter_;
    std::optional<AllWaits> waits_;
    std::optional<StuckCalls> stuck_calls_;
    Tier tier_ = Tier::session;
    Known known_;
    std::optional<StackTable> stacks_;
    std::optional<KernelNames> names_;
    NamingSchedule naming_;
    UnnamedKernels unnamed_;
    std::optional<Users> users_;
    std::optional<NvmlFigures> figures_;
    std::optional<ProcessGpus> gpus_;
    std::optional<Held> held_gpus_;
    uint64_t began_ns_ = 0; // start of tracing, CLOCK_MONOTONIC
    std::optional<Diagnosis> diagnosis_;
    std::optional<Suspensions> suspensions_;
    ExitedVerdicts exited_verdicts_; // used with --why
    std::optional<Head> head_;
    Counted counted_;                     // calls and waits of the last interval
    std::optional<KeptPreferences> kept_; // set if there is a screen
    std::optional<Live> live_;            // set if there is a screen
    Metrics* metrics_ = nullptr;          // set if the output is metrics
    std::string open_;                    // id of the opened row
    std::optional<Within> within_;
    SinceOpened since_opened_;
};

} // namespace gpusnoop::cudatop
