// SPDX-License-Identifier: Apache-2.0
// Calls into the driver that are in flight for long and are no waits. No probe measures them, so that launches stay
// cheap: threads that make no calls are inspected from outside (code/inside_search.hpp), in a helper and at a bounded
// rate. A call is stuck where two inspections, some time apart, find a thread in it with the same callers and either
// the thread has not moved in between, or a second call would have been counted.
#pragma once

#include "attach/probes.hpp"
#include "base/options.hpp"
#include "code/inside_search.hpp"
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
    double seconds = 0; // at least
    std::string function{};
    int32_t stack = -1; // as calls have it
    uint64_t caller = 0;
};

// Which threads are inspected, and what becomes of the answers. Times are CLOCK_MONOTONIC.
class StuckThreads {
public:
    // What the thread is in: is_wait where that is tracked elsewhere, is_counted where calls by it are counted.
    struct Function {
        bool is_wait = false;
        bool is_counted = false;
    };
    explicit StuckThreads(std::vector<Function> functions) : functions_(std::move(functions)) {}

    // The thread made a counted call, or is in a wait that is tracked elsewhere.
    void called(pid_t pid, uint32_t tid, uint64_t now_ns);
    // Processes to be inspected now.
    std::set<pid_t> due(const std::vector<pid_t>& users, uint64_t now_ns);
    // All threads of one of them.
    void inspected(pid_t pid, std::span<const InsideQuestion::Thread> threads, uint64_t now_ns);
    // The threads whose stacks a helper should search. Only the answer to the last question is used.
    InsideQuestion question(pid_t pid, uint64_t now_ns);
    void answered(pid_t pid, std::span<const uint32_t> tids, std::span<const InsideCall> calls);
    void forget(pid_t pid) { processes_.erase(pid); }

    struct Stuck {
        pid_t pid = 0;
        uint32_t tid = 0;
        uint64_t since_ns = 0;
        const InsideCall* call = nullptr;
    };
    std::vector<Stuck> stuck() const;

private:
    struct Thread {
        InsideQuestion::Thread registers;
        uint64_t unmoved_since_ns = 0;      // the registers are the same since
        uint64_t called_ns = 0;             // 0: no counted call yet
        uint64_t asked_ns = 0;              // by the last question
        uint64_t asked_since_ns = 0;        // unmoved_since_ns by then
        bool is_known = false;              // an answer for these registers has come
        InsideCall call;                    // that the last answers found; probe 0: none
        uint64_t found_ns = 0, seen_ns = 0; // since when, and last
        unsigned empty_answers = 0;         // answers in turn that found none
    };
    struct Process {
        std::map<uint32_t, Thread> threads;
        uint64_t next_ns = 0, pause_ns = 0; // of inspections
        bool called = false;                // since the last one
    };

    static bool is_candidate(const Thread& thread, uint64_t now_ns);

    std::vector<Function> functions_; // by number less one
    std::map<pid_t, Process> processes_;
};

class StuckCalls {
public:
    // probes: as calls are numbered by. counted: those whose calls are in the tables by thread. Of the options, those
    // that select threads.
    StuckCalls(std::span<const Probe> probes, const CallSet& counted, const Options& options,
               ThreadRegisters& registers, FoundStacks& stacks);

    // To be called once a second. users: processes that have mapped a driver.
    void inspect(const std::vector<pid_t>& users);
    // The calls that are stuck, given the calls and waits of an interval.
    std::vector<StuckCall> of_interval(std::span<const CallDelta> calls, std::span<const Waiting::Part> waits,
                                       Processes& processes);
    void forget(pid_t pid) { threads_.forget(pid); }

private:
    const Options& options_;
    ThreadRegisters& registers_;
    FoundStacks& stacks_;
    std::vector<std::string> symbols_;
    StuckThreads threads_;
    uint64_t not_before_ns_ = 0;
    InsideHelper reader_;
};

} // namespace gpusnoop
