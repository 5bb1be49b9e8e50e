// SPDX-License-Identifier: Apache-2.0
#include "symbols.hpp"

#include "calls.hpp"

#include <atomic>
#include <dlfcn.h>
#include <mutex>

namespace workload {
namespace {

std::atomic<void*> driver{nullptr};
std::mutex lock;

bool poses_as_real()
{
    static const bool set = getenv("WORKLOAD_DEVICE");
    return set;
}

// A control function of the stand-in driver, if the driver is open. The runtime may have opened it.
void* control(const char* name)
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library && !poses_as_real() ? dlsym(library, name) : nullptr;
}

} // namespace

void open_driver(const std::string& path)
{
    std::lock_guard hold(lock);
    if (driver)
        return;
    driver = dlopen(path.c_str(), RTLD_NOW);
    if (!driver)
        poses_as_real() ? skip(dlerror()) : fail(dlerror());
}

void* driver_symbol(const std::string& name)
{
    if (!driver)
        open_driver();
    if (poses_as_real() && name.starts_with("standin_"))
        return nullptr;
    return dlsym(driver, name.c_str());
}

bool on_device()
{
    return !driver_symbol("standin_counts");
}

void* symbol(const std::string& name)
{
    void* found = is_runtime(name) ? runtime_symbol(name) : driver_symbol(name);
    if (!found && name.starts_with("standin_"))
        skip("only the stand-in has " + name);
    if (!found)
        fail("no function " + name + " in this form or driver");
    return found;
}

bool driver_counters(uint64_t* counts, int n)
{
    void* function = control("standin_counts");
    if (function)
        reinterpret_cast<int (*)(uint64_t*, int)>(function)(counts, n);
    return function;
}

bool driver_holdings(standin::HoldingTally* held, standin::HoldingTally* released, uint64_t* peak)
{
    using Function = uint64_t (*)(standin::HoldingTally*, standin::HoldingTally*);
    auto function = reinterpret_cast<Function>(control("standin_holdings"));
    if (function)
        *peak = function(held, released);
    return function;
}

void forget_driver_holdings()
{
    if (void* function = control("standin_forget_holdings"))
        call_symbol(function);
}

bool driver_is_capturing(void* stream)
{
    if (void* function = control("standin_is_capturing"))
        return call_symbol(function, stream);
    int status = 0; // 1: CU_STREAM_CAPTURE_STATUS_ACTIVE
    void* is_capturing = driver ? dlsym(driver, "cuStreamIsCapturing") : nullptr;
    return is_capturing && !call_symbol(is_capturing, stream, &status) && status == 1;
}

uint64_t driver_generation(void* handle, bool is_exec)
{
    auto function = reinterpret_cast<uint64_t (*)(void*, bool)>(control("standin_graph_generation"));
    return function ? function(handle, is_exec) : 0;
}

uint64_t driver_kernels(void* exec)
{
    auto function = reinterpret_cast<uint64_t (*)(void*)>(control("standin_graph_kernels"));
    return function ? function(exec) : 0;
}

std::vector<standin::GraphRecord> driver_graphs()
{
    using Each = void (*)(const standin::GraphRecord*, void*);
    std::vector<standin::GraphRecord> out;
    auto add_to = [](const standin::GraphRecord* record, void* to) {
        static_cast<decltype(out)*>(to)->push_back(*record);
    };
    if (auto function = reinterpret_cast<void (*)(Each, void*)>(control("standin_graphs")))
        function(add_to, &out);
    return out;
}

void forget_driver_graphs()
{
    if (void* function = control("standin_forget_graphs"))
        call_symbol(function);
}

int add_setup(const std::string& name, int result)
{
    Call call;
    call.layer = is_runtime(name) ? "runtime" : "driver";
    call.function = name;
    call.kind = "setup";
    call.result = result;
    add(call, {1});
    return result;
}

} // namespace workload
