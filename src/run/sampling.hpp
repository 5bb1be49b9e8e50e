// SPDX-License-Identifier: Apache-2.0
// --max-overhead: keeps the probes' share of each process's CPU time below a ceiling. Above it, probes of calls that
// can be sampled are attached in time windows only, and the counts of the windows are scaled up.
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

// Share of the time in which a process has its sampled probes, so that all probes cost it no more than a ceiling.
class DutyCycle {
public:
    // ceiling: highest cost of the probes, relative to the process's CPU time without them.
    explicit DutyCycle(double ceiling) : ceiling_(ceiling) {}

    // For the next period; 1: always.
    double share() const { return share_; }
    bool is_whole() const { return share_ >= 1; }

    // Adds a measurement since the last call. sampled, others: cost of the sampled and of the permanent probes,
    // relative to the CPU time that the process used. share_of_time: in which the sampled probes were attached.
    void add(double sampled, double others, double share_of_time);

private:
    double ceiling_;
    double share_ = 1;
};

class Sampling {
public:
    struct Settings {
        double percent;                  // ceiling: of the CPU time that a process uses
        std::vector<std::string> hooks;  // Hook::program of the sampled hooks
        std::function<void()> read_rows; // calls absorb() with everything counted so far
    };
    // running.probes: present. object: loaded.
    Sampling(const Running& running, const bpf_object* object, Settings settings);
    Sampling(const Sampling&) = delete;
    Sampling& operator=(const Sampling&) = delete;

    // Takes counted calls. Returns true if they are of a sample: drain() then returns them scaled.
    bool absorb(const CallDelta& delta);
    // Estimates for the time since the last call.
    std::vector<CallDelta> drain();
    // Processes for which the last drain() returned estimates, by pid.
    const std::map<uint32_t, Sampled>& sampled() const { return sampled_; }

private:
    struct Process { // or all processes, if they share their probes
        explicit Process(double ceiling) : cycle(ceiling) {}
        DutyCycle cycle;
        std::optional<CallSample> sample;  // set while its calls are sampled
        std::map<uint32_t, uint64_t> pids; // and their CPU time at the last update of cpu_ns
        uint64_t cpu_ns = 0;               // this and the following: since the process was first seen
        uint64_t hits = 0, other_hits = 0; // of sampled and of permanent probes
        struct Moment {
            uint64_t wall_ns = 0, cpu_ns = 0, hits = 0, other_hits = 0;
        };
        Moment window, period;  // at their start
        uint64_t traced_ns = 0; // wall time of the period in which the sampled probes were attached
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
    std::map<pid_t, Process> processes_; // by group
    std::vector<CallDelta> ended_rows_;  // last estimates of processes that are no longer sampled
    std::map<uint32_t, Sampled> ended_sampled_;
    std::map<uint32_t, Sampled> sampled_; // of the last drain()
    Fd timer_;
};

} // namespace gpusnoop
