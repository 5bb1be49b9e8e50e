// SPDX-License-Identifier: Apache-2.0
// Where each version of CPython keeps what: of release builds for machines of 64 bits, by their own headers. From 3.13
// on, an interpreter says most of it itself (_Py_DebugOffsets), which then counts.
#pragma once

#include "bpf/shared/python.h"

#include <cstdint>
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
std::optional<PythonOffsets> offsets_told(std::span<const uint8_t> runtime);

} // namespace gpusnoop
