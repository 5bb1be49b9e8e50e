// SPDX-License-Identifier: Apache-2.0
// Callers in stacks that the kernel side has copied to us. A helper unwinds the copies (code/pending_calls.hpp). The
// results are kept while their stack ids are in use.
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

// True if -t and -n select the thread. -n matches the name of the thread or of its process.
bool is_in_scope(const thread_registers& thread, const Options& options);

PendingCallsQuestion::Thread question_of(const thread_registers& registers);

// Client of the helper that unwinds the stacks of threads to find the calls that they are in (code/pending_calls.hpp).
// Each process has at most one pending question.
class PendingCallHelper {
public:
    // tids: the threads in the question. calls: for each of them, in the same order, the call that it is in.
    using OnAnswer = std::function<void(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls)>;

    // If PendingCall::probe is n, it refers to the call symbols[n - 1]. consequence: see Reader::Service.
    PendingCallHelper(std::vector<std::string_view> symbols, std::string consequence, OnAnswer on_answer);

    bool is_pending(pid_t pid) const { return asked_.contains(pid); }
    bool ask(const PendingCallsQuestion& question); // returns false if the question was not sent
    // Applies answers that have arrived. To be called at least once a second.
    void poll() { reader_.poll(); }

private:
    bool apply(const Message& message);

    std::vector<std::string_view> symbols_;
    OnAnswer on_answer_;
    std::map<pid_t, std::vector<uint32_t>> asked_; // threads in the pending question, by process
    Reader reader_;
};

class CopiedStacks {
public:
    explicit CopiedStacks(WaitBudget* waits = nullptr); // see Reader

    void learn(std::span<const uint8_t> record); // RECORD_STACK_COPY
    // Sends questions and applies answers. To be called at least once a second.
    void tick() { send(); }

    struct Stack {
        std::vector<uint64_t> callers; // innermost first
        bool cut = false;              // the copy ended before the stack did
    };
    // Returns null if no copy was sent or its callers cannot be found. Waits for a pending answer, within the budget.
    const Stack* find(int32_t stack);
    // The number of repeated copies whose callers differ from the callers in the first copy with the same id, since
    // this function was last called.
    uint64_t mismatches_since_last() { return std::exchange(mismatches_, 0); }
    void forget(const ImageId& image);
    void keep(const std::set<int32_t>& stacks); // forgets all other stacks

private:
    struct Known {
        ImageId image{};
        Stack stack{};
    };
    bool apply(const Message& message);
    void send();

    std::map<int32_t, Known> known_;
    std::deque<StackCopyQuestion> queue_;
    std::set<int32_t> awaited_; // stacks that have no answer yet
    uint64_t mismatches_ = 0;
    Reader reader_;
};

} // namespace gpusnoop
