// SPDX-License-Identifier: Apache-2.0
// Callers in stacks that the BPF side has copied to us. A helper unwinds the copies (code/pending_calls.hpp); results
// are kept while their stack ids are in use.
#pragma once

#include "base/options.hpp"
#include "bpf/shared/stack.h"
#include "code/stack_messages.hpp"
#include "proc/mapped_file.hpp"
#include "reader/reader.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

// True if -t and -n select the thread. -n matches its name or that of its process.
bool is_in_scope(const thread_registers& thread, const Options& options);

PendingCallsQuestion::Thread question_of(const thread_registers& registers);

// Client of the helper that finds the calls that threads are inside, by unwinding their stacks
// (code/pending_calls.hpp). Each process has at most one pending question.
class PendingCallHelper {
public:
    // tids: the threads of the question; calls: the call that each is inside, in the same order.
    using OnAnswer = std::function<void(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls)>;

    // symbols[n - 1] is the call that PendingCall::probe n refers to. consequence: see Reader::Service.
    PendingCallHelper(std::vector<std::string_view> symbols, std::string consequence, OnAnswer on_answer);

    bool is_pending(pid_t pid) const { return asked_.contains(pid); }
    bool ask(const PendingCallsQuestion& question); // returns false if it was not sent
    // Applies answers that have arrived. To be called at least once a second.
    void poll() { reader_.poll(); }

private:
    bool apply(const Message& message);

    std::vector<std::string_view> symbols_;
    OnAnswer on_answer_;
    std::map<pid_t, std::vector<uint32_t>> asked_; // threads of the pending questions
    Reader reader_;
};

class CopiedStacks {
public:
    explicit CopiedStacks(WaitBudget* waits = nullptr); // see Reader

    void learn(std::span<const uint8_t> record); // RECORD_STACK_COPY
    // To be called at least once a second: sends questions and applies answers.
    void tick() { send(); }

    struct Stack {
        std::vector<uint64_t> callers; // innermost first
        bool cut = false;              // the copy ended before the stack did
    };
    // Returns null if no copy was sent or its callers cannot be found. Waits for a pending answer, within the budget.
    const Stack* find(int32_t stack);
    // Repeated copies, since the last call of this function, whose callers differ from those of the first copy with the
    // same id.
    uint64_t mismatches_since_last() { return std::exchange(mismatches_, 0); }
    void forget(const ImageId& image);
    void keep(const std::set<int32_t>& stacks); // forgets all others

private:
    struct Known {
        ImageId image{};
        Stack stack{};
    };
    bool apply(const Message& message);
    void send();

    std::map<int32_t, Known> known_;
    std::deque<StackCopyQuestion> queue_;
    std::set<int32_t> awaited_; // stacks without an answer so far
    uint64_t mismatches_ = 0;
    Reader reader_;
};

} // namespace gpusnoop
