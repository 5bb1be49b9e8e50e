// SPDX-License-Identifier: Apache-2.0
// Sandbox for processes that parse untrusted input: few privileges and system calls, bounded memory, killable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <sys/types.h>

namespace gpusnoop {

struct Sandbox {
    std::span<const int> capabilities{};    // CAP_* to keep, of those the process has
    std::span<const uint32_t> calls{};      // SYS_* beyond computing and reading open descriptors
    uint64_t memory_bytes = 0;              // beyond what the process has when it enters
    std::optional<uint64_t> cpu_seconds{};  // then the process is killed
    std::optional<uint64_t> output_bytes{}; // of a file that it writes
};

// Sandbox that may read mappings, roots and memory of all processes, the files behind mappings, and files that only
// others may read.
Sandbox process_reading_sandbox(uint64_t memory_bytes);

// Irrevocable: this process gets a user of its own and keeps no other privileges; any other system call kills it. A
// build with sanitizers keeps its calls and its memory, which those need. Exits if the kernel refuses a step.
void enter_sandbox(const Sandbox& sandbox);

} // namespace gpusnoop
