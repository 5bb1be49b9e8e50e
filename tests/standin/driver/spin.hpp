// SPDX-License-Identifier: Apache-2.0
// Kernels that take time: a kernel named spin_us_N keeps the stand-in's single device busy for N microseconds.
#pragma once

#include <atomic>
#include <string>

namespace standin {

extern std::atomic<bool> may_spin; // true once a kernel named spin_us_N was looked up

void note_kernel(const void* function, const std::string& name);
void spin(const void* function);
void wait_until_idle(); // also returns when a signal arrives, like other waits

inline void start_kernel(const void* function)
{
    if (may_spin.load(std::memory_order_relaxed)) [[unlikely]]
        spin(function);
}

} // namespace standin
