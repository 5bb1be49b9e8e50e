// SPDX-License-Identifier: Apache-2.0
// Sandbox for processes that parse untrusted input: few privileges and system calls, bounded memory, killable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <sys/types.h>

namespace gpusnoop {

struct Sandbox {
    std::span<const int> capabilities{}; // CAP_* to keep, if the process has them
    std::span<const uint32_t> calls{};   // SYS_* to allow, besides those for computing and for reading open descriptors
    uint64_t memory_bytes = 0;           // maximum size of memory allocated after entering the sandbox
    std::optional<uint64_t> cpu_seconds{};  // the process is killed after this CPU time
    std::optional<uint64_t> output_bytes{}; // maximum size of a file that the process writes
};

// Sandbox that allows reading any file, and the mappings, roots and memory of all processes.
Sandbox process_reading_sandbox(uint64_t memory_bytes);

// Enters the sandbox irrevocably. The process gets its own user id, and loses all privileges that the sandbox does not
// grant. It is killed if it makes a system call that the sandbox does not allow. Builds with sanitizers limit neither
// system calls nor memory. The process exits if the kernel refuses to change its user id or capabilities.
void enter_sandbox(const Sandbox& sandbox);

} // namespace gpusnoop
