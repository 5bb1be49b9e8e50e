// SPDX-License-Identifier: Apache-2.0
// --max-overhead: keeps what the probes take from each process below a ceiling. Where they would take more, those whose
// calls can be sampled come for windows and go again, and what is counted in the windows is scaled to all of the time.
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

// For what share of the time a process may have its probes, so that they cost it no more than a ceiling.
class DutyCycle {
public:
    // ceiling: what the probes may cost, as a part of what the process would use without them.
    explicit DutyCycle(double ceiling) : ceiling_(ceiling) {}

    // Of the time that follows; 1: always.
    double share() const { return share_; }
    bool is_whole() const { return share_ >= 1; }

    // What has been measured since the last time, as parts of the CPU time that the process used: what those probes
    // took that come and go, and those that stay. Probes were there for so much of the time.
    void add(double sampled, double others, double share_of_time);

private:
    double ceiling_;
    double share_ = 1;
};

class Sampling {
public:
    struct Settings {
        double percent;                  // of the CPU time that a process uses
        std::vector<std::string> hooks;  // Hook::program, of those that are sampled
        std::function<void()> read_rows; // has absorb() called with all that has been counted up to now
    };
    // running.probes: present. object: loaded.
    Sampling(const Running& running, const bpf_object* object, Settings settings);
    Sampling(const Sampling&) = delete;
    Sampling& operator=(const Sampling&) = delete;

    // What has been counted: true where it is not to be counted as it is.
    bool absorb(const CallDelta& delta);
    // What it stands for, up to now.
    std::vector<CallDelta> drain();
    // Processes of which drain() gave estimates, by pid.
    const std::map<uint32_t, Sampled>& sampled() const { return sampled_; }

private:
    struct Process { // or all of them, where everybody has the same probes
        explicit Process(double ceiling) : cycle(ceiling) {}
        DutyCycle cycle;
        std::optional<CallSample> sample;  // once it is
        std::map<uint32_t, uint64_t> pids; // and their CPU time, as far as it is in cpu_ns
        uint64_t cpu_ns = 0;               // since they were met, as all below
        uint64_t hits = 0, other_hits = 0; // of probes that are sampled, and of others
        struct Moment {
            uint64_t wall_ns = 0, cpu_ns = 0, hits = 0, other_hits = 0;
        };
        Moment window, period;  // at their beginning
        uint64_t traced_ns = 0; // of the period's wall time
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
    std::vector<CallDelta> ended_rows_;  // of those that are not sampled any more, for the next drain()
    std::map<uint32_t, Sampled> ended_sampled_;
    std::map<uint32_t, Sampled> sampled_; // in the last drain()
    Fd timer_;
};

} // namespace gpusnoop
