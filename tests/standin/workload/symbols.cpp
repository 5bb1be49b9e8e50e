// SPDX-License-Identifier: Apache-2.0
#include "symbols.hpp"

#include "calls.hpp"

#include <atomic>
#include <dlfcn.h>
#include <mutex>
#include <unordered_map>

// Runtime functions that this form is linked with, since dlsym() does not find those of a static runtime. The array
// ends with a null name; runtime/defaults.py writes it.
struct RuntimeFunction {
    const char* name;
    int (*function)();
};
extern "C" const RuntimeFunction runtime_functions[];

namespace workload {
namespace {

std::atomic<void*> driver{nullptr};
std::mutex lock;

bool poses_as_real()
{
    static const bool set = getenv("WORKLOAD_DEVICE");
    return set;
}

// Calls a control function of the stand-in driver. Returns 0 if the driver is not open; the runtime may have opened it.
template<class Result, class... Arguments>
Result control(const char* name, Arguments... arguments)
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void* function = library && !poses_as_real() ? dlsym(library, name) : nullptr;
    return function ? reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...) : Result();
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

void* runtime_symbol(const std::string& name)
{
    static const auto functions = [] {
        std::unordered_map<std::string_view, void*> map;
        for (auto* row = runtime_functions; row->name; row++)
            map[row->name] = reinterpret_cast<void*>(row->function);
        return map;
    }();
    auto found = functions.find(name);
    return found == functions.end() ? nullptr : found->second;
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
    return control<int>("standin_counts", counts, n);
}

bool driver_holdings(standin::HoldingTally* held, standin::HoldingTally* released, uint64_t* peak)
{
    *peak = control<uint64_t>("standin_holdings", held, released);
    return control<int>("standin_counts", nullptr, 0);
}

void forget_driver_state()
{
    control<void>("standin_forget_holdings");
    control<void>("standin_forget_graphs");
}

bool driver_is_capturing(void* stream)
{
    if (driver && on_device()) {
        int status = 0; // 1: CU_STREAM_CAPTURE_STATUS_ACTIVE
        return !call_symbol(symbol("cuStreamIsCapturing"), stream, &status) && status == 1;
    }
    return control<int>("standin_is_capturing", stream);
}

uint64_t driver_generation(void* handle, bool is_exec)
{
    return control<uint64_t>("standin_graph_generation", handle, is_exec);
}

uint64_t driver_kernels(void* exec)
{
    return control<uint64_t>("standin_graph_kernels", exec);
}

std::vector<standin::GraphRecord> driver_graphs()
{
    std::vector<standin::GraphRecord> out;
    void (*add_to)(const standin::GraphRecord*, void*) = [](const standin::GraphRecord* record, void* to) {
        static_cast<decltype(out)*>(to)->push_back(*record);
    };
    control<void>("standin_graphs", add_to, static_cast<void*>(&out));
    return out;
}

int add_setup(const std::string& name, int result)
{
    Call call = call_of(name, "setup");
    call.device = -1;
    call.result = result;
    add(call, {1});
    return result;
}

} // namespace workload
