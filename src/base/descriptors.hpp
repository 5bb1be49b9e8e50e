// SPDX-License-Identifier: Apache-2.0
// How many files this process may have open (RLIMIT_NOFILE), and how many it has.
#pragma once

#include <cstddef>

namespace gpusnoop {

size_t descriptor_limit();
size_t open_descriptors();

} // namespace gpusnoop
