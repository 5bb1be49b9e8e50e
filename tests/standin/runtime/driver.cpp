// SPDX-License-Identifier: Apache-2.0
// The runtime's access to the driver, and each thread's device. As in the real runtime, the first call that needs
// the driver opens it with dlopen, looks up all functions by base name with cuGetProcAddress_v2, and calls cuInit.
#include "runtime.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <mutex>

namespace standin {
namespace {

Driver table;
int open_result;
std::once_flag opened;
constexpr int max_devices = 16;
void* primary[max_devices];
std::mutex primary_lock;

struct Thread {
    int device = 0;
    bool current = false; // this thread has a current context
    int last_error = success;
    int armed_result = success;
};
constinit thread_local Thread thread;

template<class Pointer>
bool resolve(Pointer (&out)[2], const char* name, int version)
{
    // Version 7000: per-thread variants exist since CUDA 7.
    return !table.get_proc_address(name, reinterpret_cast<void**>(&out[legacy]), version, 0, nullptr) &&
           !table.get_proc_address(name, reinterpret_cast<void**>(&out[per_thread]), std::max(version, 7000), 2,
                                   nullptr) &&
           out[legacy] && out[per_thread];
}

int open_driver()
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return insufficient_driver;
    table.get_proc_address = reinterpret_cast<decltype(table.get_proc_address)>(dlsym(library, "cuGetProcAddress_v2"));
    if (!table.get_proc_address)
        return insufficient_driver;
#define STANDIN_RESOLVE(name, version, parameters)                                                                     \
    if (!resolve(table.name, #name, version))                                                                          \
        return insufficient_driver;
    STANDIN_DRIVER_FUNCTIONS(STANDIN_RESOLVE)
#undef STANDIN_RESOLVE
    if (table.get_proc_address("cuGraphAddNode", reinterpret_cast<void**>(&table.add_node), 12020, 0, nullptr) ||
        table.get_proc_address("cuGraphAddNode", reinterpret_cast<void**>(&table.add_node_with_edges), 12030, 0,
                               nullptr))
        return insufficient_driver;
    int version = 0;
    table.cuDriverGetVersion[legacy](&version);
    if (version < CUDART * 1000)
        return insufficient_driver;
    return table.cuInit[legacy](0);
}

int make_current(int device)
{
    std::lock_guard hold(primary_lock);
    if (!primary[device])
        if (int result = table.cuDevicePrimaryCtxRetain[legacy](&primary[device], device))
            return result;
    int result = table.cuCtxSetCurrent[legacy](primary[device]);
    thread.current = !result;
    return result;
}

} // namespace

const Driver& driver()
{
    return table;
}

int prepare()
{
    if (thread.current) [[likely]]
        return success;
    std::call_once(opened, [] { open_result = open_driver(); });
    if (open_result)
        return open_result;
    // A context that the program has made current through the driver API stays current.
    void* context = nullptr;
    if (!table.cuCtxGetCurrent[legacy](&context) && context) {
        thread.current = true;
        return success;
    }
    return make_current(thread.device);
}

int current_device()
{
    return thread.device;
}

int& last_error()
{
    return thread.last_error;
}

int take_armed_result()
{
    int result = thread.armed_result;
    thread.armed_result = success;
    return result;
}

} // namespace standin

using namespace standin;

RUNTIME(cudaSetDevice)(int device)
{
    thread.current = false;
    std::call_once(opened, [] { open_result = open_driver(); });
    int count = 0;
    if (int result = open_result ? open_result : table.cuDeviceGetCount[legacy](&count))
        return finish(result);
    if (device < 0 || device >= std::min(count, max_devices))
        return finish(invalid_device);
    thread.device = device;
    return finish(make_current(device));
}

// For tests: this thread's next runtime call that would call the driver returns `code` instead. Driver calls for
// initialization do not count.
extern "C" void standin_runtime_next_result(int code)
{
    thread.armed_result = code;
}
