// SPDX-License-Identifier: Apache-2.0
// What a process may still do that reads what others have made: whatever that does to it, it does to a process that can
// change nothing, cannot grow, and ends when it is told to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <sys/types.h>

namespace gpusnoop {

struct Confinement {
    std::span<const int> capabilities;    // CAP_* that are kept, of those there are
    std::span<const uint32_t> calls;      // SYS_* beyond those that reckon and read what is open
    uint64_t memory_bytes = 0;            // beyond what it has when it is confined
    std::optional<uint64_t> cpu_seconds;  // then it is killed
    std::optional<uint64_t> output_bytes; // of a file that it writes
};

// For good: this process has a user of its own, no privileges but those, and any other system call kills it. A build
// with sanitizers keeps its calls and its memory, which those need. Ends the process where something is refused.
void confine(const Confinement& to);

} // namespace gpusnoop
