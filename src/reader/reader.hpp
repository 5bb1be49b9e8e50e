// SPDX-License-Identifier: Apache-2.0
// What a helper (reader/helper.hpp) may do that reads what processes have.
#pragma once

#include <cstdint>

namespace gpusnoop {

// For good: mappings, roots and memory of all processes, the files behind mappings, and files that only others may
// read. memory_bytes: of its own, beyond what it has now.
void confine_reader(uint64_t memory_bytes);

} // namespace gpusnoop
