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

    // From 0. Beyond the sixth they are on the stack, above what the trampoline has put there (driver/thunks.py).
    uint64_t argument(int n) const { return n < 6 ? registers[n] : registers[9 + n - 6]; }
};

using Tracer = void (*)(const TracedCall&);

} // namespace standin
