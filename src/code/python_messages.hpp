// SPDX-License-Identifier: Apache-2.0
// What is asked of the helper that looks for the interpreters of processes, and what it answers. One answer for each
// question.
#pragma once

#include "bpf/shared/python.h"
#include "reader/message.hpp"

#include <cstdint>
#include <string>

namespace gpusnoop {

struct PythonQuestion {
    int32_t pid = 0;
};

void fields(auto& each, same_as_const<PythonQuestion> auto& q)
{
    each(q.pid);
}

struct PythonAnswer {
    int32_t pid = 0;
    std::string layout{};                                                // the bytes of a python_layout; empty: none
    uint64_t code_start = 0, code_end = 0, loop_start = 0, loop_end = 0; // see PythonInterpreter
    std::string refused{};
};

void fields(auto& each, same_as_const<PythonAnswer> auto& a)
{
    each(a.pid, a.layout, a.code_start, a.code_end, a.loop_start, a.loop_end, a.refused);
}

} // namespace gpusnoop
