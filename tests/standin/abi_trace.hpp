// SPDX-License-Identifier: Apache-2.0
// Interface through which the stand-in CUPTI traces calls into the stand-in driver. NVIDIA's own interface for this is
// not public.
#pragma once

#include <cstdint>

namespace standin {

struct TracedCall {
    unsigned function;         // index for standin_traced_name()
    bool is_return;            // false: entry
    const uint64_t* registers; // argument registers at entry, in the order of the arguments
    int* result;               // the call's result; only valid at return

    // Argument number `n`, from 0. Arguments that are not in registers are on the stack, above the words that the
    // trampoline pushed (driver/thunks.py).
    uint64_t argument(int n) const { return registers[n < in_registers ? n : n - in_registers + first_on_stack]; }

#if defined(__aarch64__)
    static constexpr int in_registers = 8, first_on_stack = 10;
#else
    static constexpr int in_registers = 6, first_on_stack = 9;
#endif
};

using Tracer = void (*)(const TracedCall&);

} // namespace standin
