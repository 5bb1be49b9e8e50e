// SPDX-License-Identifier: Apache-2.0
// Interface for profilers. The first cuInit loads the library named by CUDA_INJECTION64_PATH. A tracer that the library
// installs is called for every later API call. Tracing replaces the slots of the thunks, so calls without a tracer have
// no overhead.
#include "../abi_trace.hpp"
#include "state.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

using standin::TracedCall;
using standin::Tracer;

namespace {

struct Thunk { // thunks.py writes the array
    const char* name;
    const void** slot;
    const void* trampoline;
    const void* implementation;
};

std::atomic<Tracer> tracer{nullptr};

} // namespace

extern "C" __attribute__((visibility("hidden"))) const Thunk standin_thunks[];
extern "C" __attribute__((visibility("hidden"))) const size_t standin_thunk_count;

// Called by the trampolines before and after the implementation.
extern "C" __attribute__((visibility("hidden"))) void standin_traced(unsigned function, bool is_return,
                                                                     const uint64_t* registers, int* result)
{
    tracer.load()({function, is_return, registers, result});
}

CONTROL(void, standin_trace)(Tracer by)
{
    tracer = by;
    for (size_t i = 0; i < standin_thunk_count; i++)
        std::atomic_ref(*standin_thunks[i].slot).store(standin_thunks[i].trampoline);
}

// Returns null if there is no such function.
CONTROL(const char*, standin_traced_name)(unsigned function)
{
    return function < standin_thunk_count ? standin_thunks[function].name : nullptr;
}

namespace standin {

void inject()
{
    static std::once_flag once;
    std::call_once(once, [] {
        const char* path = getenv("CUDA_INJECTION64_PATH");
        void* library = path ? dlopen(path, RTLD_NOW) : nullptr;
        if (void* initialize = library ? dlsym(library, "InitializeInjection") : nullptr)
            reinterpret_cast<int (*)()>(initialize)();
    });
}

} // namespace standin
