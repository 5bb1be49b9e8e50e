// SPDX-License-Identifier: Apache-2.0
// Stacks of unfinished waits. The kernel side records a long wait's stack only when the wait returns. Until then, a
// helper unwinds the thread's stack (code/pending_calls.hpp).
#pragma once

#include "attach/probes.hpp"
#include "code/pending_calls.hpp"
#include "names/copied_stacks.hpp"
#include "proc/threads.hpp"
#include "tools/cudasync/waits.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <sys/types.h>
#include <utility>

namespace gpusnoop {

class WaitStacks {
public:
    // probes: call keys refer to them by index.
    WaitStacks(std::span<const Probe> probes, ThreadRegisters& registers, UnwoundStacks& stacks);

    // parts: all waits of the interval that has just ended. Fills in the stacks of unfinished long waits as far as they
    // are known, and requests the others from the helper.
    void add_to(std::span<Waiting::Part> parts);

private:
    using Thread = std::pair<pid_t, uint32_t>; // pid, tid
    struct Wait {
        uint64_t since_ns = 0;
        unsigned tries = 0;
        bool asked = false; // the last request about the process included this thread
        int32_t stack = -1;
        uint64_t caller = 0;
    };

    void ask();
    void apply(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls);

    UnwoundStacks& stacks_;
    ThreadRegisters& registers_;
    std::map<Thread, Wait> waits_;
    PendingCallHelper reader_;
};

} // namespace gpusnoop
