// SPDX-License-Identifier: Apache-2.0
// What is asked of the helper that looks which calls threads are in, and what it answers. One answer for each question.
#pragma once

#include "bpf/shared/stack.h"
#include "reader/message.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusnoop {

struct PendingCallsQuestion {
    static constexpr size_t threads_max = 256;

    struct Replaced { // a return address that is not on the stack while a return probe waits for it
        uint64_t slot = 0, address = 0;
        bool operator==(const Replaced&) const = default;
    };
    struct Thread {
        uint32_t tid = 0;
        uint64_t ip = 0, sp = 0;
        std::array<uint64_t, KEPT_REGISTERS> kept{}; // as thread_registers has them
        std::vector<Replaced> replaced{};
        bool operator==(const Thread&) const = default;
    };
    uint32_t pid = 0;
    std::vector<Thread> threads{};
};

void fields(auto& each, same_as_const<PendingCallsQuestion::Replaced> auto& r)
{
    each(r.slot, r.address);
}

void fields(auto& each, same_as_const<PendingCallsQuestion::Thread> auto& t)
{
    each(t.tid, t.ip, t.sp, t.kept, t.replaced);
}

void fields(auto& each, same_as_const<PendingCallsQuestion> auto& q)
{
    each(q.pid, q.threads);
}

// A call that has not returned.
struct PendingCall {
    static constexpr size_t callers_max = 48; // a message has room for so many of each thread

    uint32_t probe = 0; // number of its row, as calls have it, from 1 on; 0: the thread is in none of these
    uint64_t stack = 0; // where its caller's stack ends: two calls at one place are in turn
    std::vector<uint64_t> callers{}; // return addresses, the call's own first
    auto operator<=>(const PendingCall&) const = default;
};

struct PendingCallsAnswer {
    uint32_t pid = 0;
    std::vector<PendingCall> calls{}; // of the threads, in the order of the question
};

void fields(auto& each, same_as_const<PendingCall> auto& c)
{
    each(c.probe, c.stack, c.callers);
}

void fields(auto& each, same_as_const<PendingCallsAnswer> auto& a)
{
    each(a.pid, a.calls);
}

// What is asked of the helper that finds the callers in copies of stacks, and what it answers. One answer for each
// question.
struct StackCopyQuestion {
    int32_t stack = 0; // its id
    uint32_t pid = 0;  // 0: nothing is asked
    uint32_t at = 0;   // enum copied_at, and COPIED_AGAIN
    PendingCallsQuestion::Thread thread{};
    std::string bytes{}; // from its stack pointer on
};

void fields(auto& each, same_as_const<StackCopyQuestion> auto& q)
{
    each(q.stack, q.pid, q.at, q.thread, q.bytes);
}

struct StackCopyAnswer {
    static constexpr size_t callers_max = 128;

    int32_t stack = 0;
    std::vector<uint64_t> callers{}; // return addresses, the call's own first; none: they are not found
    bool cut = false;                // the copy ends before the stack does
    bool again = false;              // it was not the first copy
};

void fields(auto& each, same_as_const<StackCopyAnswer> auto& a)
{
    each(a.stack, a.callers, a.cut, a.again);
}

} // namespace gpusnoop
