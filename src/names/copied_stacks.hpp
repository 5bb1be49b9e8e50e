// SPDX-License-Identifier: Apache-2.0
// Stacks of which the kernel side has sent a copy: their callers, found by a helper (code/inside_search.hpp), for as
// long as somebody may ask for them.
#pragma once

#include "base/options.hpp"
#include "bpf/shared/stack.h"
#include "code/stack_questions.hpp"
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

// Which calls threads are in, as a helper finds by their stacks (code/inside_search.hpp).

// The options select the thread: -t, and -n by the name of it or of its process.
bool is_in_scope(const thread_registers& thread, const Options& options);

InsideQuestion::Thread question_of(const thread_registers& registers);

// Asks that helper; of each process, one question at a time.
class InsideHelper {
public:
    // tids: threads of the process, as it was asked about them; calls: what they are in, in the same order.
    using Take = std::function<void(pid_t pid, std::span<const uint32_t> tids, std::span<const InsideCall> calls)>;

    // symbols: of calls, at their numbers less one. consequence: as in Reader.
    InsideHelper(std::vector<std::string_view> symbols, std::string consequence, Take take);

    // There is a question about it that has no answer yet.
    bool is_asked_about(pid_t pid) const { return asked_.contains(pid); }
    bool ask(const InsideQuestion& question); // returns false if it was not sent
    // Takes what has come. To be called now and then.
    void poll() { reader_.poll(); }

private:
    bool apply(const Message& message);

    std::vector<std::string_view> symbols_;
    Take take_;
    std::map<pid_t, std::vector<uint32_t>> asked_; // threads of the questions that have no answer yet
    Reader reader_;
};

class CopiedStacks {
public:
    explicit CopiedStacks(WaitBudget* waits = nullptr); // see Reader

    void learn(std::span<const uint8_t> record); // RECORD_STACK_COPY
    // Now and then: takes what has come.
    void tick() { send(); }

    struct Stack {
        std::vector<uint64_t> callers; // innermost first
        bool cut = false;              // there are more
    };
    // Null where it is not known: none was sent, or what it says cannot be followed. Waits a while for what is still
    // being looked for.
    const Stack* of(int32_t stack);
    // Calls, since the last time this was asked, whose stack was copied again, and had other callers than the first
    // copy with that id.
    uint64_t mismatches_since_last() { return std::exchange(mismatches_, 0); }
    void forget(const ImageId& image);
    void keep(const std::set<int32_t>& stacks); // and no others

private:
    struct Known {
        ImageId image{};
        Stack stack{};
    };
    bool apply(const Message& message);
    void send();

    std::map<int32_t, Known> known_;
    std::deque<CopyQuestion> asked_later_;
    std::set<int32_t> awaited_; // all that have no answer yet
    uint64_t mismatches_ = 0;
    Reader reader_;
};

} // namespace gpusnoop
