// SPDX-License-Identifier: Apache-2.0
// Waits that began before tracing, so that no probe saw their entry. When tracing begins, a helper searches all stacks
// of processes that have mapped a driver (code/pending_calls.hpp). A thread found in a wait is watched until the wait
// returns. A wait is reported only after two scans have found it.
#pragma once

#include "attach/probes.hpp"
#include "base/options.hpp"
#include "code/pending_calls.hpp"
#include "names/copied_stacks.hpp"
#include "proc/threads.hpp"
#include "tools/cudasync/waits.hpp"
#include "who/processes.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

class EarlierWaits {
public:
    // probes: call keys refer to them by index. driver, runtime: whether to search for waits in driver and runtime
    // calls, respectively. options: only the thread filters are used; they must outlive this object.
    EarlierWaits(std::span<const Probe> probes, bool driver, bool runtime, const Options& options,
                 ThreadRegisters& registers, UnwoundStacks& stacks);

    // Call this once a second, and after each of first_scan_delays. Scans processes that have started to use a driver,
    // and threads that were found in a wait. Forgets threads that have made a traced wait (waiting.threads()): their
    // earlier wait has returned.
    void scan(const std::vector<pid_t>& users, Waiting& waiting);
    static constexpr std::chrono::milliseconds first_scan_delays[] = {std::chrono::milliseconds(150),
                                                                      std::chrono::milliseconds(400)};

    // Returns, for each unfinished wait, the part that falls into the interval ending now.
    std::vector<Waiting::Part> parts(uint64_t now_ns, double seconds, Processes& processes);

    // Call this when the process has exited or called exec.
    void forget(pid_t pid) { processes_.erase(pid); }

private:
    struct Thread {
        PendingCallsQuestion::Thread registers; // the thread's registers at the last scan
        PendingCall call;                       // the pending call that the helper last found on the thread's stack
        unsigned seen = 0;          // number of scans that confirmed `call`: the helper found it, or the registers had
                                    // not changed
        unsigned empty_answers = 0; // number of the helper's consecutive answers without a pending call
        bool asked = false;         // the helper has not answered yet about this thread

        void reset()
        {
            call = {};
            seen = 0;
        }
    };
    struct Process {
        uint64_t began_ns = 0; // time of the first scan, CLOCK_MONOTONIC
        unsigned scans = 0;
        std::map<uint32_t, Thread> threads;
    };

    std::set<pid_t> due(const std::vector<pid_t>& users);
    void forget_threads(Process& process, const std::set<uint32_t>& seen, const std::set<uint32_t>& called) const;
    void ask(pid_t pid, const Process& process);
    void apply(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls);

    std::span<const Probe> probes_;
    const Options& options_;
    UnwoundStacks& stacks_;
    ThreadRegisters& registers_;
    uint64_t started_ns_; // start of tracing, CLOCK_BOOTTIME
    std::map<pid_t, Process> processes_;
    PendingCallHelper reader_;
};

} // namespace gpusnoop
