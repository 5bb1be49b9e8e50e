// SPDX-License-Identifier: Apache-2.0
// Stacks of unfinished waits. The kernel side records the stack of a long wait when it returns. Until then a helper
// unwinds the thread's stack (code/pending_calls.hpp).
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
    // probes: in the order of their numbers in call keys.
    WaitStacks(std::span<const Probe> probes, ThreadRegisters& registers, UnwoundStacks& stacks);

    // parts: all waits of an interval that has just ended. Sets the stacks of unfinished long waits if they are known,
    // and requests them from the helper if not.
    void add_to(std::span<Waiting::Part> parts);

private:
    using Thread = std::pair<pid_t, uint32_t>; // pid, tid
    struct Wait {
        uint64_t since_ns = 0;
        unsigned tries = 0;
        bool asked = false; // included in the last question about its process
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
