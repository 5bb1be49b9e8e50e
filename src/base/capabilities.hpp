// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/capability.h>
#include <span>

namespace gpusnoop {

// CAP_* is in effect for this process.
bool has_capability(int capability);

// Gives up all but these, of those there are, for good; what it execs as root gets them back. False where the kernel
// refuses that.
bool keep_capabilities(std::span<const int> kept);

} // namespace gpusnoop
