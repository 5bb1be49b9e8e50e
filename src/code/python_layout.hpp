// SPDX-License-Identifier: Apache-2.0
// Where each version of CPython keeps what: of release builds for machines of 64 bits, by their own headers. From 3.13
// on, an interpreter says most of it itself (_Py_DebugOffsets), which then counts.
#pragma once

#include "bpf/shared/python.h"
#include "code/decoder.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace gpusnoop {

struct PythonVersion {
    unsigned minor = 0; // 3.minor
    // Where the lists of its threads are: in the runtime, in an interpreter, in a thread's state.
    uint16_t interpreters = 0;
    uint16_t next_interpreter = 0;
    uint16_t threads = 0;
    uint16_t next_thread = 0;
    bool in_variable = false; // a thread has its state in a variable of its own, and not behind a key of glibc's
    python_layout layout{};   // but for the slot

    static constexpr unsigned first = 8, last = 15;
};

// nullopt where nobody here knows it.
std::optional<PythonVersion> python_version(unsigned minor);

// What the interpreter says of itself, in its first bytes: `runtime` are those of _PyRuntime. nullopt where it says
// nothing, or what cannot be. Free-threaded builds say it, too.
struct PythonOffsets {
    PythonVersion version;
    bool free_threaded = false;
};
std::optional<PythonOffsets> debug_offsets(std::span<const uint8_t> runtime);

// Where glibc keeps what belongs to a thread, and how code gets at it: on each machine.
struct ThreadStorage {
    // The first block of keys (struct pthread, specific_1stblock), from pthread_self() on. It has been there
    // since 2.21.
    uint64_t first_block;

    // From pthread_self() to the thread pointer. code: that of pthread_self(); nullopt where it does anything else.
    // Null: both are the same.
    std::optional<uint64_t> (*thread_pointer)(const Code& code);

    // The variable of the thread's that a function returns, from the thread pointer on: of a program that is no
    // library, as Debian's Pythons are.
    std::optional<int32_t> (*returned_variable)(const Code& code);

    // All places that a function may read whose code knows where an object is, and others that it does not.
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
