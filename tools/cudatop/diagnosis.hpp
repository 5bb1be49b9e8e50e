// SPDX-License-Identifier: Apache-2.0
// Diagnosis: derives signs (signs.hpp) from the recent counts of each process, and applies the rules to the signs.
#pragma once

#include "gpu/nvml_figures.hpp"
#include "gpu/xids.hpp"
#include "proc/mapped_file.hpp"
#include "proc/process.hpp"
#include "rows/calls.hpp"
#include "rows/holdings.hpp"
#include "rows/process_gpus.hpp"
#include "tools/cudasync/waits.hpp"
#include "tools/cudatop/restarts.hpp"
#include "tools/cudatop/rules.hpp"
#include "tools/cudatop/stuck_calls.hpp"
#include "tools/nvioctl/driver_calls.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

// Lower bound of the CPU time that a thread used within its waits (spinning). Assumes that the thread used the CPU
// during all of its time outside waits.
uint64_t spun_ns(uint64_t waiting_ns, uint64_t cpu_ns, uint64_t interval_ns);

class Diagnosis {
public:
    // results_of_copies: true if copies have return probes. Otherwise only failures of synchronous copies are known.
    Diagnosis(Processes& processes, bool results_of_copies)
        : processes_(processes), results_of_copies_(results_of_copies)
    {}

    // The counts of an interval. References and views need not be valid after add() returns.
    struct Interval {
        std::span<const CallDelta> calls;
        std::span<const Waiting::Part> waits;
        std::span<const driver_call> driver_calls; // driver calls in flight
        std::span<const StuckCall> stuck_calls;
        const Holdings& holdings;
        const std::map<uint32_t, XidsOf>& xids; // by pid
        const NvmlFigures& nvml;
        const ProcessGpus& gpus;
        const std::set<ImageId>& exited;
        uint64_t now_ns = 0; // end of the interval, CLOCK_MONOTONIC
        double seconds = 0;
        // The line or function of the user's program that made the call with this stack; empty: unknown.
        std::function<std::string(const ImageId& image, int32_t stack, uint64_t caller)> function_of{};
        // Why a waiting thread cannot run, such as "stopped by a signal"; empty if it can.
        std::function<std::string(uint32_t pid, uint32_t tid)> suspension_of{};
    };
    void add(const Interval& interval);
    // Notes that a process exited. boot_ns: CLOCK_BOOTTIME.
    void exited(uint32_t pid, uint64_t boot_ns) { exits_.emplace_back(pid, boot_ns); }

    // The verdicts of the last interval, in the order of comes_before().
    const std::vector<Verdict>& verdicts() const { return verdicts_; }

    // Seconds since one of these processes last made a call or had a pending call; nullopt if that was in the last
    // interval.
    std::optional<double> quiet_seconds(const std::set<ImageId>& images) const;
    // CPU time in the last interval, as a share of one CPU; nullopt in the first interval.
    std::optional<double> cpu_percent(const std::set<ImageId>& images) const;

    // Scheduling in the last interval, summed over the threads that made calls in the last few seconds; nullopt if it
    // is unknown for all of them.
    struct Scheduling {
        double waited_percent = 0;   // time ready to run without a CPU, as a share of one CPU's time
        double turns_per_second = 0; // how many times per second a thread was given a CPU
    };
    std::optional<Scheduling> scheduling(const std::set<ImageId>& images) const;

    // Time that these threads (pid, tid) spun in waits in the last interval; nullopt if unknown for one of the threads.
    // The time is unknown in a thread's first interval.
    std::optional<uint64_t> spinning_ns(const std::set<std::pair<uint32_t, uint32_t>>& threads) const;

    // Growth of device memory in bytes per second, over window_seconds (rules.hpp); nullopt if unknown for all of these
    // processes.
    std::optional<double> growth(const std::set<ImageId>& images) const;
    // Seconds until a GPU of these processes is full if memory keeps growing at the rate of growth(); nullopt if memory
    // does not grow, or without NVML.
    std::optional<double> full_in_seconds(const std::set<ImageId>& images) const;

    // Ids of the stacks of recent synchronous copies, which must stay in the kernel's stack table.
    std::set<int32_t> stacks() const;

    void forget(const std::set<ImageId>& images);

private:
    using Place = std::pair<int32_t, uint64_t>; // stack and caller
    using Error = std::pair<Calls, std::string>;
    using ByThread = std::map<uint32_t, uint64_t>; // ns

    struct Counts { // counts of one process in one interval
        double seconds = 0;
        std::array<uint64_t, static_cast<size_t>(Calls::count)> calls{};
        std::map<Error, uint64_t> errors;
        uint64_t launches = 0, captured = 0;
        uint64_t captures = 0, instantiations = 0;
        uint64_t grids = 0, small_grids = 0;
        uint64_t copies = 0, small_copies = 0, synchronous = 0;
        uint64_t polls = 0;
        uint64_t allocations = 0, refused = 0, refused_bytes = 0, frees = 0;
        int64_t grown_bytes = 0;
        std::optional<uint64_t> cpu_ns;
        std::map<Place, uint64_t> copied_from; // number of synchronous copies by place, if their stack was sampled
        ByThread launching, waiting;
        std::map<uint32_t, uint64_t> launched; // number of launches, by thread
        // The next four members are about threads that made calls in the last few seconds.
        ByThread spinning;                     // CPU time within waits
        ByThread starving;                     // time ready to run without a CPU
        ByThread off_cpu;                      // time asleep or blocked, outside waits
        uint64_t turns = 0;                    // how often these threads were given a CPU
        std::optional<unsigned> gpu_percent{}; // how busy the process's busiest GPU was, according to NVML
        std::optional<MachineLoad> load{};     // load at the end of the interval; set only if a thread starved
        std::set<uint32_t> callers{};          // ids of threads that made calls
    };

    // How long a condition has lasted, ignoring short pauses.
    struct Streak {
        double seconds = 0; // duration without the pauses
        double pause = 0;
        unsigned intervals = 0;
        void add(bool holds, bool is_over, double interval_seconds);
        // 0 after a single interval, because the cause may have been a single event.
        double lasted() const { return intervals > 1 ? seconds : 0; }
    };

    struct History {
        std::deque<Counts> counts; // newest last
        uint64_t called_ns = 0;    // end of the last interval with a call, or of the first interval if there was no
                                   // call
        uint64_t launched_ns = 0;  // start of the last interval with a launch
        int64_t held_bytes = 0;    // memory held at the end of the last interval
        std::optional<uint64_t> cpu_ns;
        std::map<uint32_t, ThreadCpuTime> threads; // CPU time of threads that made calls in the last few seconds
        Streak growing, capturing, small;
        std::array<double, static_cast<size_t>(Calls::count)> failing_seconds{};
        // State at the end of the last interval.
        std::optional<Waiting::Part> wait;  // the longest unfinished wait
        std::string suspension;             // why the thread in `wait` cannot run; empty if it can
        uint64_t suspended_ns = 0;          // time for which the thread in `wait` was suspended: sum of the intervals
                                            // that ended while it was suspended
        uint64_t suspended_since_ns = 0;    // start of the wait for which suspended_ns was measured
        std::optional<bool> has_nccl;       // checked once per long wait
        std::optional<driver_call> pending; // the longest pending driver call
        std::optional<StuckCall> stuck;     // the longest stuck call
        std::optional<uint64_t> free_bytes; // free memory on the process's fullest GPU
    };

    void count(Counts& counts, const CallDelta& delta) const;
    void count_held(const Holdings& holdings);
    void end_interval(const ImageId& image, History& history, double seconds);
    static std::optional<Place> most_copied_from(const History& history);
    static void measure_threads(const ImageId& image, History& history);
    static void check_suspension(const ImageId& image, History& history, const Interval& interval);
    static void detect_nccl(const ImageId& image, History& history);
    static void record_gpu_busy(const ImageId& image, History& history, const Interval& interval);
    Signs signs(const ImageId& image, const History& history, const Interval& interval) const;
    void add_gpus(const ImageId& image, Signs& signs, const NvmlFigures& nvml, const ProcessGpus& gpus) const;
    void add_load();
    void judge(const ImageId& image, History& history, const Interval& interval);
    Verdict new_verdict(const ImageId& image);
    void track_start(const ImageId& image);
    void judge_restarts(uint64_t boot_ns);

    Processes& processes_;
    bool results_of_copies_;
    std::map<ImageId, History> known_;
    std::map<ImageId, uint64_t> launches_; // number of launches within window_seconds
    Restarts restarts_;
    std::vector<std::pair<uint32_t, uint64_t>> exits_; // pid and exit time (ns, CLOCK_BOOTTIME) of processes that
                                                       // exited since the last interval
    uint64_t now_ns_ = 0;
    std::vector<Verdict> verdicts_;
};

} // namespace gpusnoop
