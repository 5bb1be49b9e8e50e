// SPDX-License-Identifier: Apache-2.0
// Constructor of a forwarding library: opens the target library NEXT, a path relative to this library's folder, and
// fills the slots of the thunks.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

namespace {

struct Forward { // thunks.py writes the array
    const char* target;
    void* thunk;
};

} // namespace

extern "C" {

extern __attribute__((visibility("hidden"))) const Forward forwards[];
extern __attribute__((visibility("hidden"))) void* forward_slots[];
extern __attribute__((visibility("hidden"))) const size_t forward_count;
}

namespace {

void* next = nullptr;

[[gnu::constructor]] void open_next()
{
    Dl_info own{};
    dladdr(forwards[0].thunk, &own);
    std::string path = own.dli_fname;
    path = path.substr(0, path.rfind('/') + 1) + NEXT;
    next = dlopen(path.c_str(), RTLD_NOW);
    if (!next) {
        fprintf(stderr, "forward: %s\n", dlerror());
        abort();
    }
    for (size_t i = 0; i < forward_count; i++)
        forward_slots[i] = dlsym(next, forwards[i].target);
}

template<class Function>
[[maybe_unused]] Function* next_function(const char* name)
{
    return reinterpret_cast<Function*>(dlsym(next, name));
}

#ifdef FORWARDS_LOOKUPS
// Makes lookups return this library's function instead of the target's.
void replace(void** function)
{
    for (size_t i = 0; i < forward_count; i++)
        if (function && forward_slots[i] && *function == forward_slots[i])
            *function = forwards[i].thunk;
}
#endif

} // namespace

#ifdef FORWARDS_LOOKUPS

extern "C" int cuGetProcAddress(const char* symbol, void** out, int version, uint64_t flags)
{
    const int result = next_function<decltype(cuGetProcAddress)>(__func__)(symbol, out, version, flags);
    replace(out);
    return result;
}

extern "C" int cuGetProcAddress_v2(const char* symbol, void** out, int version, uint64_t flags, int* status)
{
    const int result = next_function<decltype(cuGetProcAddress_v2)>(__func__)(symbol, out, version, flags, status);
    replace(out);
    return result;
}

#endif

#ifdef FORWARDS_BUSILY

extern "C" int cuStreamQuery(void* stream);

// A launch first calls a function of this library and several functions of the target.
extern "C" int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                              void** parameters, void** extra)
{
    uint64_t address = 0;
    cuStreamQuery(stream);
    next_function<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&address, 64);
    next_function<int(uint64_t)>("cuMemFree_v2")(address);
    return next_function<decltype(cuLaunchKernel)>(__func__)(function, grid_x, grid_y, grid_z, block_x, block_y,
                                                             block_z, shared_bytes, stream, parameters, extra);
}

#endif
