// SPDX-License-Identifier: Apache-2.0
// The Python interpreter of a process: its version, and the location of each thread's PyThreadState.
//
// Up to 3.14, the pointer to a thread's state is stored with pthread_setspecific(); from 3.15 on, in a thread-local
// variable. The runtime also has a pointer to the state that holds the GIL, and a thread-local copy of that pointer.
// Neither is used: PyTorch and Triton release the GIL around a launch, and then these pointers are null or refer to
// another thread.
//
// The pthread key is found by comparing memory: it is the key whose slot in each thread contains the thread's own
// state. Several keys may match (in PyTorch, pybind11 has such a key). In that case, the key that
// PyGILState_GetThisThreadState() reads is used. The offset of the thread-local variable also comes from the code of
// this function, and is then checked in memory.
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

// Messages to and from the helper that finds interpreters. Each question gets one answer.
struct PythonQuestion {
    int32_t pid = 0;
};

void fields(auto& each, same_as_const<PythonQuestion> auto& q)
{
    each(q.pid);
}

struct PythonAnswer {
    int32_t pid = 0;
    std::string layout{};                                                // bytes of a python_layout, or empty
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
    std::optional<python_layout> layout{}; // nullopt if there is no Python, or if its version is not supported
    PythonCodeRange code{};                // the interpreter's code
    PythonCodeRange loop{};                // _PyEval_EvalFrameDefault(); empty if it has no symbol
    std::string refused{};                 // why there is no layout, for a warning; may be empty
};

// Reads memory of a process. Returns false unless all `size` bytes can be read.
using ReadMemory = std::function<bool(uint64_t address, void* to, size_t size)>;

// Searches the process's mapped files and memory. Throws Error if they cannot be read.
PythonInterpreter find_interpreter(pid_t pid);

struct PythonVersion;
struct ThreadStorage;
// Returns where a thread stores the pointer to its Python state, as an offset from the thread pointer. The offset is
// found by comparing memory with the runtime's thread lists. nullopt if that fails. get_state: code of
// PyGILState_GetThisThreadState(); may be empty. self: offset from pthread_self() to the thread pointer.
std::optional<int32_t> find_state_slot(const PythonVersion& version, uint64_t runtime, const Code& get_state,
                                       const ThreadStorage& storage, uint64_t self, const ReadMemory& read);

// Main loop of the helper that finds interpreters. It runs in a sandbox, because it reads untrusted data of other
// processes.
void serve_python_search(Helper::Task& task);
inline constexpr uint64_t python_search_memory_bytes = 64 << 20; // memory limit of that sandbox

} // namespace gpusnoop
