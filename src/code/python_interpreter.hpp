// SPDX-License-Identifier: Apache-2.0
// The Python interpreter of a process: which version it is, and where a thread's state is found.
//
// The state is in the thread's own storage: behind a key of glibc's (pthread_getspecific) up to 3.14, in a variable
// from 3.15 on. Two shorter ways are not taken: the runtime's pointer to the state that holds the lock, and the
// variable that each thread has of it, name no thread or another one while the lock is released, as PyTorch and Triton
// do around a launch. Which key it is, memory says: in every thread, the same slot has its own state. Others may have
// it, too, as pybind11's has in PyTorch: of those, it is the one whose number the code of
// PyGILState_GetThisThreadState() reads. Which variable, that code says, too, and memory is to agree.
#pragma once

#include "bpf/shared/python.h"
#include "code/decoder.hpp"
#include "reader/helper.hpp"
#include "reader/message.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpusnoop {

// What is asked of the helper that looks for the interpreters of processes, and what it answers. One answer for each
// question.
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

struct PythonCodeRange {
    uint64_t start = 0, end = 0;
    bool has(uint64_t address) const { return address >= start && address < end; }
};

struct PythonInterpreter {
    std::optional<python_layout> layout{}; // none: there is no Python, or it is not followed
    PythonCodeRange code{};                // of the interpreter itself
    PythonCodeRange loop{};                // the function that runs Python; empty: it has no name
    std::string refused{};                 // why it is not, in words that follow "its Python stacks are not followed: "
};

// Reads from a process' memory. False where not all of it can be read.
using ReadMemory = std::function<bool(uint64_t address, void* to, size_t size)>;

// Looks at the files that the process maps, and at its memory. Throws Error where they cannot be read.
PythonInterpreter find_interpreter(pid_t pid);

// The slot that each thread's state is in, as an offset to its thread pointer, by the runtime's lists of threads;
// nullopt where memory does not tell. get_state: the code of PyGILState_GetThisThreadState(), as much as there is;
// self: from pthread_self() to the thread pointer.
struct PythonVersion;
struct ThreadStorage;
std::optional<int32_t> find_state_slot(const PythonVersion& version, uint64_t runtime, const Code& get_state,
                                       const ThreadStorage& storage, uint64_t self, const ReadMemory& read);

// Looks for the interpreters of processes: a helper's work (reader/helper.hpp), as it reads what processes have.

// A helper's whole life: answers questions (code/python_interpreter.hpp) until its owner has gone.
inline constexpr uint64_t python_search_memory_bytes = 64 << 20; // of its sandbox

void serve_python_search(Helper::Task& task);

} // namespace gpusnoop
