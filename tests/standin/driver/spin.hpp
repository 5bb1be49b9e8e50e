// SPDX-License-Identifier: Apache-2.0
// Kernels that take their time: a kernel spin_us_N keeps the device, of which there is one here, busy for N
// microseconds.
#pragma once

#include <atomic>
#include <string>

namespace standin {

extern std::atomic<bool> may_spin; // such a kernel has been looked up

void note_kernel(const void* function, const std::string& name);
void spin(const void* function);
void wait_until_idle(); // or until a signal comes, as in other waits

inline void start_kernel(const void* function)
{
    if (may_spin.load(std::memory_order_relaxed)) [[unlikely]]
        spin(function);
}

} // namespace standin
