// SPDX-License-Identifier: Apache-2.0
// Which calls threads are in, as a helper finds by their stacks (code/inside_search.hpp).
#pragma once

#include "base/options.hpp"
#include "bpf/shared/thread_registers.h"
#include "code/stack_questions.hpp"
#include "reader/reader.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

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
    void ask(const InsideQuestion& question);
    // Takes what has come. To be called now and then.
    void poll() { reader_.poll(); }

private:
    bool apply(const Message& message);

    std::vector<std::string_view> symbols_;
    Take take_;
    std::map<pid_t, std::vector<uint32_t>> asked_; // threads of the questions that have no answer yet
    Reader reader_;
};

} // namespace gpusnoop
