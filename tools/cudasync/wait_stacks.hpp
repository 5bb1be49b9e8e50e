// SPDX-License-Identifier: Apache-2.0
// Stacks of waits that go on. The kernel side takes that of a long wait when it returns, which these do not: their
// threads' stacks are found from outside, by a helper (code/pending_calls.hpp).
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
    // probes: as calls are numbered by.
    WaitStacks(std::span<const Probe> probes, ThreadRegisters& registers, UnwoundStacks& stacks);

    // All waits of an interval, at its end. Those that have gone on for long get their stack as far as it is known by
    // now; the others are asked for.
    void add_to(std::span<Waiting::Part> parts);

private:
    using Thread = std::pair<pid_t, uint32_t>; // and its id
    struct Wait {
        uint64_t since_ns = 0;
        unsigned tries = 0;
        bool asked = false; // by the last question about its process
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
