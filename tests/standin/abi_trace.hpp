// SPDX-License-Identifier: Apache-2.0
// How the stand-in CUPTI hears of calls into the stand-in driver. NVIDIA's have such an interface, too, which is their
// own.
#pragma once

#include <cstdint>

namespace standin {

struct TracedCall {
    unsigned function;         // its number: standin_traced_name() has its name
    bool leaves;               // or enters
    const uint64_t* registers; // as they were when it entered, in the order of arguments
    int* result;               // if it leaves

    // From 0. Beyond those in registers they are on the stack, above what the trampoline has put there
    // (driver/thunks.py).
    uint64_t argument(int n) const { return registers[n < in_registers ? n : n - in_registers + first_on_stack]; }

#if defined(__aarch64__)
    static constexpr int in_registers = 8, first_on_stack = 10;
#else
    static constexpr int in_registers = 6, first_on_stack = 9;
#endif
};

using Tracer = void (*)(const TracedCall&);

} // namespace standin
