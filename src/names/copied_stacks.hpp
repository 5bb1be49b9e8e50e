// SPDX-License-Identifier: Apache-2.0
// Callers (return addresses) in user stacks. The BPF programs send copies of the stacks, and a helper process unwinds
// the copies (code/pending_calls.hpp). The callers are kept while their stack id is in use.
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

// True if the filters -t and -n select the thread. -n matches the thread name or the process name.
bool is_in_scope(const thread_registers& thread, const Options& options);

PendingCallsQuestion::Thread question_of(const thread_registers& registers);

// Client of the helper process that unwinds the stacks of threads to find their pending calls (code/pending_calls.hpp).
// At most one question per target process is pending.
class PendingCallHelper {
public:
    // tids: the threads in the question. calls: the pending call of each thread, in the order of tids.
    using OnAnswer = std::function<void(pid_t pid, std::span<const uint32_t> tids, std::span<const PendingCall> calls)>;

    // symbols: names of the traced functions; PendingCall::probe is an index in them, counted from 1. consequence: see
    // Reader::Service.
    PendingCallHelper(std::vector<std::string_view> symbols, std::string consequence, OnAnswer on_answer);

    bool is_pending(pid_t pid) const { return asked_.contains(pid); }
    bool ask(const PendingCallsQuestion& question); // returns false if the question was not sent
    // Applies answers that have arrived. To be called at least once a second.
    void poll() { reader_.poll(); }

private:
    bool apply(const Message& message);

    std::vector<std::string_view> symbols_;
    OnAnswer on_answer_;
    std::map<pid_t, std::vector<uint32_t>> asked_; // process -> the threads in its pending question
    Reader reader_;
};

class CopiedStacks {
public:
    explicit CopiedStacks(WaitBudget* waits = nullptr); // waits: see Reader

    void learn(std::span<const uint8_t> record); // record: of type RECORD_STACK_COPY
    // Sends questions and applies answers. To be called at least once a second.
    void tick() { send(); }

    struct Stack {
        std::vector<uint64_t> callers; // innermost first
        bool cut = false;              // the copy ended before the stack did
    };
    // Returns null if no copy was received or its callers cannot be found. Waits for a pending answer, within the wait
    // budget.
    const Stack* find(int32_t stack);
    // Some stacks are copied repeatedly. Returns the number of copies whose callers differ from those in the first copy
    // of the same stack. Counts copies since the last call of this function.
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
    std::set<int32_t> awaited_; // stacks whose copies have not been unwound yet
    uint64_t mismatches_ = 0;
    Reader reader_;
};

} // namespace gpusnoop
