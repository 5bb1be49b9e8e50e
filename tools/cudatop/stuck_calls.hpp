// SPDX-License-Identifier: Apache-2.0
// Driver API calls, other than waits, that do not return. To keep launches cheap, no probe measures these calls.
// Instead, a helper process inspects the stacks of threads that make no calls (code/pending_calls.hpp), at a bounded
// rate. A call is stuck if two inspections, some time apart, find it on the thread's stack with the same callers, and
// it cannot have returned in between. A return is ruled out if the thread's registers have not changed, or if the
// function's calls are counted and no new call was counted.
#pragma once

#include "attach/probes.hpp"
#include "base/options.hpp"
#include "code/pending_calls.hpp"
#include "names/copied_stacks.hpp"
#include "proc/threads.hpp"
#include "tools/cudasync/waits.hpp"
#include "who/processes.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

// A call that had not returned at the last inspection.
struct StuckCall {
    ImageId image{};
    uint32_t tid = 0;
    double seconds = 0; // lower bound of the duration so far
    std::string function{};
    int32_t stack = -1; // id of the call stack, as in call_key
    uint64_t caller = 0;
};

// Decides which threads to inspect, and evaluates the results. Times are CLOCK_MONOTONIC.
class StuckThreads {
public:
    struct Function {
        bool is_wait = false;    // the function waits; waits are tracked elsewhere (tools/cudasync/)
        bool is_counted = false; // the BPF programs count the function's calls per thread
    };
    explicit StuckThreads(std::vector<Function> functions) : functions_(std::move(functions)) {}

    // Records that the thread made a counted call, or is in a wait.
    void called(pid_t pid, uint32_t tid, uint64_t now_ns);
    // Returns the processes to inspect now.
    std::set<pid_t> due(const std::vector<pid_t>& users, uint64_t now_ns);
    // Records the registers of all threads of the process.
    void inspected(pid_t pid, std::span<const PendingCallsQuestion::Thread> threads, uint64_t now_ns);
    // Returns the threads whose stacks a helper process should inspect. Do not call this while an answer for the
    // process is pending, because answered() takes every answer as one to the last question.
    PendingCallsQuestion question(pid_t pid, uint64_t now_ns);
    void answered(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls);
    void forget(pid_t pid) { processes_.erase(pid); }

    struct Stuck {
        pid_t pid = 0;
        uint32_t tid = 0;
        uint64_t since_ns = 0;
        const PendingCall* call = nullptr;
    };
    std::vector<Stuck> stuck() const;

private:
    struct Thread {
        PendingCallsQuestion::Thread registers;
        uint64_t unmoved_since_ns = 0; // when the registers last changed
        uint64_t called_ns = 0;        // time of the last counted call or wait; 0: none yet
        uint64_t asked_ns = 0;         // when question() last included this thread; 0: not since called_ns
        uint64_t asked_since_ns = 0;   // value of unmoved_since_ns at asked_ns
        bool is_known = false;         // a helper has inspected the stack, and the registers have not changed since
        PendingCall call;              // call that a helper last found on the stack; probe 0: none
        uint64_t found_ns = 0, seen_ns = 0; // when the thread was first and last found in this call
        unsigned empty_answers = 0;         // number of consecutive answers that found no call in the thread
    };
    struct Process {
        std::map<uint32_t, Thread> threads;
        uint64_t next_ns = 0, pause_ns = 0; // time of the next inspection; pause between inspections
        bool called = false;                // a thread made a call since the last inspection
    };

    static bool is_candidate(const Thread& thread, uint64_t now_ns);

    std::vector<Function> functions_; // by PendingCall::probe - 1
    std::map<pid_t, Process> processes_;
};

class StuckCalls {
public:
    // probes: ordered by their numbers in call keys. counted: calls for which the BPF programs keep a count per thread.
    // options: only the thread filters are used.
    StuckCalls(std::span<const Probe> probes, const CallSet& counted, const Options& options,
               ThreadRegisters& registers, UnwoundStacks& stacks);

    // Must be called once a second. users: processes that have mapped a driver.
    void inspect(const std::vector<pid_t>& users);
    // Returns the calls that are stuck at the end of an interval. calls, waits: the interval's calls and waits.
    std::vector<StuckCall> of_interval(std::span<const CallDelta> calls, std::span<const Waiting::Part> waits,
                                       Processes& processes);
    void forget(pid_t pid) { threads_.forget(pid); }

private:
    const Options& options_;
    ThreadRegisters& registers_;
    UnwoundStacks& stacks_;
    std::vector<std::string> symbols_;
    StuckThreads threads_;
    uint64_t not_before_ns_ = 0;
    PendingCallHelper reader_;
};

} // namespace gpusnoop
