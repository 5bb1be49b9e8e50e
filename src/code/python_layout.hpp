// SPDX-License-Identifier: Apache-2.0
// Offsets of fields in CPython's structures by version, taken from the headers of 64-bit release builds. From 3.13 on,
// the interpreter publishes most offsets in _Py_DebugOffsets, and the published values take precedence.
#pragma once

#include "bpf/shared/python.h"
#include "code/decoder.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace gpusnoop {

struct PythonVersion {
    unsigned minor = 0; // Python 3.minor
    // Offsets of list pointers: interpreters is in _PyRuntime, next_interpreter and threads are in an interpreter
    // state, and next_thread is in a thread state.
    uint16_t interpreters = 0;
    uint16_t next_interpreter = 0;
    uint16_t threads = 0;
    uint16_t next_thread = 0;
    bool in_variable = false; // true if a thread-local variable, not a pthread key, holds the thread state
    python_layout layout{};   // offsets for BPF programs; the member `slot` is not set

    static constexpr unsigned first = 8, last = 15;
};

// Returns nullopt if the version is not supported.
std::optional<PythonVersion> python_version(unsigned minor);

// Contents of _Py_DebugOffsets.
struct PythonOffsets {
    PythonVersion version;
    bool free_threaded = false; // true for a free-threaded build, which also has _Py_DebugOffsets
};
// Parses _Py_DebugOffsets. runtime: the first bytes of _PyRuntime. Returns nullopt if they contain no debug offsets or
// invalid ones.
std::optional<PythonOffsets> debug_offsets(std::span<const uint8_t> runtime);

// Layout of glibc's thread-local storage, and parsers of code that accesses it, for one architecture.
struct ThreadStorage {
    // Offset, from pthread_self(), of the first block of keys (specific_1stblock of struct pthread). It has not changed
    // since glibc 2.21.
    uint64_t first_block;

    // Parses the code of pthread_self(). Returns the distance from the address that pthread_self() returns to the
    // thread pointer; nullopt if the code is not recognized. On an architecture where pthread_self() returns the thread
    // pointer itself, this member is null.
    std::optional<uint64_t> (*thread_pointer)(const Code& code);

    // Returns the offset, from the thread pointer, of the thread-local variable that a function returns. Supports only
    // code in an executable, such as Debian's Python, not code in a library.
    std::optional<int32_t> (*returned_variable)(const Code& code);

    // Calls found() for each address that a function may access in the object at address `object`, and possibly for
    // unrelated addresses. code: machine code of the function.
    void (*places)(const Code& code, uint64_t object, const std::function<void(uint64_t)>& found);
};

extern const ThreadStorage storage_on_x86_64, storage_on_arm64;

inline const ThreadStorage& host_storage()
{
#if defined(__aarch64__)
    return storage_on_arm64;
#else
    return storage_on_x86_64;
#endif
}

} // namespace gpusnoop
