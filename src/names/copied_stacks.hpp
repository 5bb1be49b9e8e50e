// SPDX-License-Identifier: Apache-2.0
// Stacks of which the kernel side has sent a copy: their callers, found by a helper (code/copy_search.hpp), for as
// long as somebody may ask for them.
#pragma once

#include "code/stack_questions.hpp"
#include "proc/mapped_file.hpp"
#include "reader/reader.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace gpusnoop {

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
    uint64_t others_since_last() { return std::exchange(others_, 0); }
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
    uint64_t others_ = 0;
    Reader reader_;
};

} // namespace gpusnoop
