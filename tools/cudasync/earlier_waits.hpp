// SPDX-License-Identifier: Apache-2.0
// Waits that began before tracing did: no probe has seen them begin. The threads of processes that have mapped a driver
// are looked at when tracing begins, and those that are in such a call as long as they are; what their stacks say is
// found by a helper (code/pending_calls.hpp). A wait counts once it has been seen twice.
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
    // probes: as calls are numbered by; looked for are waits of these layers. Of the options, those that say which
    // threads are asked for; they must outlive the object.
    EarlierWaits(std::span<const Probe> probes, bool driver, bool runtime, const Options& options,
                 ThreadRegisters& registers, UnwoundStacks& stacks);

    // To be called once a second, and a few times within the first one: scans at processes of which it is known now
    // that they have a driver, and at what waits. waiting: its threads are those that have begun a wait since.
    void scan(const std::vector<pid_t>& users, Waiting& waiting);
    static constexpr std::chrono::milliseconds first_scan_delays[] = {std::chrono::milliseconds(150),
                                                                      std::chrono::milliseconds(400)};

    // Those that go on, as parts of the interval that ends now.
    std::vector<Waiting::Part> parts(uint64_t now_ns, double seconds, Processes& processes);

    // The process has ended, or is another program.
    void forget(pid_t pid) { processes_.erase(pid); }

private:
    struct Thread {
        PendingCallsQuestion::Thread registers; // at the last look
        PendingCall call;                       // by the last answer that found one
        unsigned seen = 0;                      // answers with this call
        unsigned empty_answers = 0;             // answers in turn that found none, since
        bool asked = false;                     // and there is no answer yet

        void lose()
        {
            call = {};
            seen = 0;
        }
    };
    struct Process {
        uint64_t began_ns = 0; // when it was looked at first, CLOCK_MONOTONIC
        unsigned scans = 0;
        std::map<uint32_t, Thread> threads;
    };

    std::set<pid_t> due(const std::vector<pid_t>& users);
    void forget_threads(Process& process, const std::set<uint32_t>& seen, const std::set<uint32_t>& called) const;
    void ask(pid_t pid, const Process& process);
    void take(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls);

    std::span<const Probe> probes_;
    const Options& options_;
    UnwoundStacks& stacks_;
    ThreadRegisters& registers_;
    uint64_t started_ns_; // CLOCK_BOOTTIME
    std::map<pid_t, Process> processes_;
    PendingCallHelper reader_;
};

} // namespace gpusnoop
