// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress. Accepts only names without suffixes: the CUDA version selects _v2, _v3 and so on; flag 2 selects
// per-thread variants. Returns the address of an exported thunk, as all examined real drivers do.
#include "state.hpp"

#include <algorithm>
#include <cstring>

using namespace standin;

namespace {

struct Proc { // thunks.py writes the array, sorted by base, then version
    const char* base;
    void* thunk;
    int version;
    int per_thread;
};

enum Status { found = 0, symbol_not_found = 1, version_too_old = 2 };
constexpr uint64_t per_thread_flag = 2;

} // namespace

extern "C" __attribute__((visibility("hidden"))) const Proc standin_procs[];
extern "C" __attribute__((visibility("hidden"))) const size_t standin_proc_count;

namespace {

Status find(const char* symbol, int version, bool per_thread, void** out)
{
    auto less = [](const Proc& a, const Proc& b) { return strcmp(a.base, b.base) < 0; };
    auto [first, last] =
        std::equal_range(standin_procs, standin_procs + standin_proc_count, Proc{symbol, nullptr, 0, 0}, less);
    // If a function has no per-thread variant, the flag is ignored.
    per_thread &= std::any_of(first, last, [](const Proc& p) { return p.per_thread; });
    *out = nullptr;
    for (auto* p = first; p != last; p++)
        if (p->per_thread == per_thread && p->version <= version)
            *out = p->thunk;
    return *out ? found : first == last ? symbol_not_found : version_too_old;
}

} // namespace

DRIVER(cuGetProcAddress_v2)(const char* symbol, void** out, int version, uint64_t flags, int* status)
{
    if (!symbol || !out || version > driver_version || flags > per_thread_flag)
        return invalid_value;
    Status result = find(symbol, version, flags == per_thread_flag, out);
    if (status)
        *status = result;
    return success;
}

DRIVER(cuGetProcAddress)(const char* symbol, void** out, int version, uint64_t flags)
{
    int result = impl_cuGetProcAddress_v2(symbol, out, version, flags, nullptr);
    return !result && !*out ? not_found : result;
}
