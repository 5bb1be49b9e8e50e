// SPDX-License-Identifier: Apache-2.0
// What is asked of the helper that finds the callers in copies of stacks, and what it answers. One answer for each
// question.
#pragma once

#include "code/inside_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusnoop {

struct CopyQuestion {
    int32_t stack = 0; // its id
    uint32_t pid = 0;  // 0: nothing is asked
    uint32_t at = 0;   // enum copied_at, and COPIED_AGAIN
    InsideQuestion::Thread thread{};
    std::string bytes{}; // from its stack pointer on
};

void fields(auto& each, same_as_const<CopyQuestion> auto& q)
{
    each(q.stack, q.pid, q.at, q.thread, q.bytes);
}

struct CopyAnswer {
    static constexpr size_t callers_max = 128;

    int32_t stack = 0;
    std::vector<uint64_t> callers{}; // return addresses, the call's own first; none: they are not found
    bool cut = false;                // the copy ends before the stack does
    bool again = false;              // it was not the first copy
};

void fields(auto& each, same_as_const<CopyAnswer> auto& a)
{
    each(a.stack, a.callers, a.cut, a.again);
}

} // namespace gpusnoop
