// SPDX-License-Identifier: Apache-2.0
// Sampling for --max-overhead, which keeps the probes' share of each process's CPU time below a ceiling. If the share
// is higher, the probes of calls that can be sampled are attached only in time windows, and the counts from these
// windows are scaled up.
#pragma once

#include "attach/calibrate.hpp"
#include "attach/programs.hpp"
#include "base/fd.hpp"
#include "rows/call_sample.hpp"
#include "run/tool.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// Controls the share of time in which the sampled probes are attached to a process, so that the cost of all its probes
// stays below a ceiling.
class DutyCycle {
public:
    // ceiling: maximum cost of the probes, relative to the process's CPU time without probes.
    explicit DutyCycle(double ceiling) : ceiling_(ceiling) {}

    // Share of the next period in which the sampled probes should be attached; 1 means always.
    double share() const { return share_; }
    bool is_whole() const { return share_ >= 1; }

    // Adds a measurement for the time since the last add(). sampled, others: cost of the sampled probes and of the
    // permanent probes, relative to the CPU time used by the process. share_of_time: share of that time in which the
    // sampled probes were attached.
    void add(double sampled, double others, double share_of_time);

private:
    double ceiling_;
    double share_ = 1;
};

class Sampling {
public:
    struct Settings {
        // --max-overhead: maximum cost of the probes, in percent of the process's CPU time
        double percent;
        std::vector<std::string> hooks;  // names of the sampled hooks (Hook::program)
        std::function<void()> read_rows; // must call absorb() with all calls counted so far
    };
    // running.probes must be set. object must be loaded.
    Sampling(const Running& running, const bpf_object* object, Settings settings);
    Sampling(const Sampling&) = delete;
    Sampling& operator=(const Sampling&) = delete;

    // Accepts counted calls. Returns true if their process is being sampled; drain() then returns them, scaled up.
    bool absorb(const CallDelta& delta);
    // Returns estimated calls since the last drain().
    std::vector<CallDelta> drain();
    // Accuracy of the estimates of the last drain(), by pid; contains only processes that were sampled.
    const std::map<uint32_t, Sampled>& sampled() const { return sampled_; }

private:
    struct Process { // a process, or all processes if they share their probes
        explicit Process(double ceiling) : cycle(ceiling) {}
        DutyCycle cycle;
        std::optional<CallSample> sample;  // set while calls are sampled
        std::map<uint32_t, uint64_t> pids; // pid -> its CPU time in ns at the last update of cpu_ns
        uint64_t cpu_ns = 0;               // CPU time since the process was first seen
        uint64_t hits = 0, other_hits = 0; // hits of sampled probes, and of others, since the process was first seen
        struct Moment {
            uint64_t wall_ns = 0, cpu_ns = 0, hits = 0, other_hits = 0;
        };
        Moment window, period;  // state when the current window and the current period began
        uint64_t traced_ns = 0; // time in the current period during which the sampled probes were attached
        uint64_t due_ns = 0;
        bool reported = false;
        bool has_ended = false;
    };

    void on_timer();
    void track_users();
    void step(pid_t group, Process& process);
    void open(Process& process);
    void close(pid_t group, Process& process);
    static Process::Moment moment_of(Process& process);
    uint64_t work_ns(const Process::Moment& at);
    void begin_window(Process& process);
    void end_window(Process& process);
    void measure(pid_t group, Process& process);
    void end(Process& process);
    static void mark(const Process& process, std::map<uint32_t, Sampled>& in);
    void report_sampled(pid_t group, Process& process, double percent);
    void set_timer();
    std::optional<double> hit_ns();

    Running running_;
    const PausableProbes& probes_;
    Settings settings_;
    ProbeCostMeter probe_;
    ProgramTimes programs_;
    std::map<pid_t, Process> processes_; // by PausableProbes::group_of()
    std::vector<CallDelta> ended_rows_;  // last estimates of processes that are no longer sampled
    std::map<uint32_t, Sampled> ended_sampled_;
    std::map<uint32_t, Sampled> sampled_; // result of the last drain()
    Fd timer_;
};

} // namespace gpusnoop
