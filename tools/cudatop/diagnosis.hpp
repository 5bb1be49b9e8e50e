// SPDX-License-Identifier: Apache-2.0
// What is wrong with which process: the last seconds of each, made into signs, and the rules' words about them.
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

// Of a thread that waited for so long and used so much CPU time: what it must have used in its waits, if it used the
// CPU whenever it did not wait.
uint64_t spun_ns(uint64_t waiting_ns, uint64_t cpu_ns, uint64_t interval_ns);

class Diagnosis {
public:
    // results_of_copies: their calls come with one; else those that wait are all that is known to fail.
    Diagnosis(Processes& processes, bool results_of_copies)
        : processes_(processes), results_of_copies_(results_of_copies)
    {}

    // What an interval counted. All of it is looked at here, nothing is kept.
    struct Interval {
        std::span<const CallDelta> calls;
        std::span<const Waiting::Part> waits;
        std::span<const driver_call> driver_calls; // that go on
        std::span<const StuckCall> stuck_calls;
        const Holdings& holdings;
        const std::map<uint32_t, XidsOf>& xids; // by pid
        const NvmlFigures& nvml;
        const ProcessGpus& gpus;
        const std::set<ImageId>& exited;
        uint64_t now_ns = 0; // its end, CLOCK_MONOTONIC
        double seconds = 0;
        // The function of the program that such a stack is in; empty: not known.
        std::function<std::string(const ImageId& image, int32_t stack, uint64_t caller)> function_of{};
        // What keeps a thread from running, "stopped by a signal"; empty: nothing does. Called for threads that wait.
        std::function<std::string(uint32_t pid, uint32_t tid)> suspension_of{};
    };
    void add(const Interval& interval);
    // boot_ns: CLOCK_BOOTTIME.
    void exited(uint32_t pid, uint64_t boot_ns) { exits_.emplace_back(pid, boot_ns); }

    // As of the last interval: the worst first, then by name.
    const std::vector<Verdict>& verdicts() const { return verdicts_; }

    // Since a call of one of these began or went on, at the end of an interval; nullopt: in the last one.
    std::optional<double> quiet_seconds(const std::set<ImageId>& images) const;
    // Of one CPU, in the last interval; nullopt in the first.
    std::optional<double> cpu_percent(const std::set<ImageId>& images) const;

    // Of their threads that have called in the last seconds, as sums of the last interval; nullopt: not known of any.
    struct Scheduling {
        double waited_percent = 0; // of one CPU's time: ready to run, but without one
        double turns_per_second = 0;
    };
    std::optional<Scheduling> scheduling(const std::set<ImageId>& images) const;

    // Time of the last interval that threads (pid, tid) were in waits and used a CPU; nullopt: not known of all of
    // them, as in the first interval that one of them waits in.
    std::optional<uint64_t> spinning_ns(const std::set<std::pair<uint32_t, uint32_t>>& threads) const;

    // Device memory that they allocated less what they freed, in bytes per second of the last seconds (rules.hpp);
    // nullopt: none of them is known yet.
    std::optional<double> growth(const std::set<ImageId>& images) const;
    // Until the GPU of one of them is full at that rate; nullopt: it does not grow, or NVML does not tell.
    std::optional<double> full_in_seconds(const std::set<ImageId>& images) const;

    // Those of the kernel side that may be asked for.
    std::set<int32_t> stacks() const;

    void forget(const std::set<ImageId>& images);

private:
    using Place = std::pair<int32_t, uint64_t>; // stack and caller
    using Error = std::pair<Calls, std::string>;
    using ByThread = std::map<uint32_t, uint64_t>; // ns

    // Of one interval.
    struct Counts {
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
        std::map<Place, uint64_t> copied_from; // synchronously; of those that had a stack
        ByThread launching, waiting;
        std::map<uint32_t, uint64_t> launched; // by thread
        ByThread spinning;                     // of waiting; of those threads of which it is known
        ByThread starving;                     // ready to run, but without a CPU; of those threads that have called
        ByThread off_cpu;                      // neither that, nor on a CPU, nor in a wait; of the same
        std::optional<unsigned> gpu_percent{}; // of the busiest of its GPUs, by NVML
        uint64_t turns = 0;                    // that these had
        std::optional<MachineLoad> load{};     // at its end; where one of them had no CPU
        std::set<uint32_t> callers{};          // threads
    };

    // How long something has gone on, whose pauses are short.
    struct Streak {
        double seconds = 0; // without the pauses
        double pause = 0;
        unsigned intervals = 0;
        void add(bool goes_on, bool is_over, double interval_seconds);
        // What was seen in one interval only, however long that was, may have happened once.
        double lasts() const { return intervals > 1 ? seconds : 0; }
    };

    struct History {
        std::deque<Counts> counts; // the newest last
        uint64_t called_ns = 0;    // the end of the last interval with a call, or the first one
        uint64_t launched_ns = 0;  // when the last interval with a launch began
        int64_t held_bytes = 0;    // as of the last interval
        std::optional<uint64_t> cpu_ns;
        std::map<uint32_t, ThreadCpuTime> threads; // that called in the last seconds, as of the last interval
        Streak growing, capturing, small;
        std::array<double, static_cast<size_t>(Calls::count)> failing_seconds{};
        // Of the last interval.
        std::optional<Waiting::Part> wait;
        std::string suspension;          // of its thread
        uint64_t suspended_ns = 0;       // of that wait, as far as ends of intervals show
        uint64_t suspended_since_ns = 0; // begin of that wait
        std::optional<bool> has_nccl;    // looked for once, while it waits for long
        std::optional<driver_call> pending;
        std::optional<StuckCall> stuck;     // the longest
        std::optional<uint64_t> free_bytes; // of its GPU
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
    Verdict about(const ImageId& image);
    void track_start(const ImageId& image);
    void judge_restarts(uint64_t boot_ns);

    Processes& processes_;
    bool results_of_copies_;
    std::map<ImageId, History> known_;
    std::map<ImageId, uint64_t> launches_; // of the window
    Restarts restarts_;
    std::vector<std::pair<uint32_t, uint64_t>> exits_; // pid and CLOCK_BOOTTIME, since the last interval
    uint64_t now_ns_ = 0;
    std::vector<Verdict> verdicts_;
};

} // namespace gpusnoop
