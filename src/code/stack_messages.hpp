// SPDX-License-Identifier: Apache-2.0
// Messages to and from the helper processes that unwind stacks of traced processes. Each question gets one answer.
#pragma once

#include "bpf/shared/stack.h"
#include "reader/message.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusnoop {

// Asks which calls the given threads have not returned from yet. PendingCallSearch answers it.
struct PendingCallsQuestion {
    static constexpr size_t threads_max = 256;

    struct Replaced { // a return address on the stack that a return probe has replaced; address: the real one
        uint64_t slot = 0, address = 0;
        bool operator==(const Replaced&) const = default;
    };
    struct Thread {
        uint32_t tid = 0;
        uint64_t ip = 0, sp = 0;
        std::array<uint64_t, KEPT_REGISTERS> kept{}; // callee-saved registers, in the order of thread_registers
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
    static constexpr size_t callers_max = 48; // maximum per thread, so that an answer fits into a message

    uint32_t probe = 0; // row number in the probe table, counted from 1; 0: the thread is in no traced call
    uint64_t stack = 0; // the caller's stack pointer: equal for consecutive calls, different for nested calls
    std::vector<uint64_t> callers{}; // return addresses, innermost first
    auto operator<=>(const PendingCall&) const = default;
};

struct PendingCallsAnswer {
    uint32_t pid = 0;
    std::vector<PendingCall> calls{}; // one per thread, in the order of the question
};

void fields(auto& each, same_as_const<PendingCall> auto& c)
{
    each(c.probe, c.stack, c.callers);
}

void fields(auto& each, same_as_const<PendingCallsAnswer> auto& a)
{
    each(a.pid, a.calls);
}

// Asks for the callers in a copy of a stack. StackCopyUnwinder answers it.
struct StackCopyQuestion {
    int32_t stack = 0; // id of the stack
    uint32_t pid = 0;  // 0 if the question is empty
    uint32_t at = 0;   // enum copied_at; with the flag COPIED_AGAIN for a further copy of the stack
    PendingCallsQuestion::Thread thread{};
    std::string bytes{}; // contents of the stack, starting at the stack pointer
};

void fields(auto& each, same_as_const<StackCopyQuestion> auto& q)
{
    each(q.stack, q.pid, q.at, q.thread, q.bytes);
}

struct StackCopyAnswer {
    static constexpr size_t callers_max = 128;

    int32_t stack = 0;
    std::vector<uint64_t> callers{}; // return addresses, innermost first; empty if unwinding failed
    bool cut = false;                // true if the copy is too short to unwind the whole stack
    bool again = false;              // true if the question was about a further copy of the stack (COPIED_AGAIN)
};

void fields(auto& each, same_as_const<StackCopyAnswer> auto& a)
{
    each(a.stack, a.callers, a.cut, a.again);
}

} // namespace gpusnoop
