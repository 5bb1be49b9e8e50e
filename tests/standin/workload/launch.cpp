// SPDX-License-Identifier: Apache-2.0
// Launches kernels and host functions by any API function that can do so. To add a function, add a row.
#include "calls.hpp"
#include "kernels.hpp"
#include "session.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <atomic>

namespace workload {
namespace {

using standin::Dim3;

struct Request {
    const Kernel* kernel = nullptr; // null: not a named kernel
    void* handle = nullptr;         // CUfunction, CUkernel, stub or cudaKernel_t, depending on the function
    Dim3 grid, block;
    unsigned shared = 0;
    void* stream = nullptr;
    void** arguments = nullptr;
    standin::LaunchConfig config;
    std::vector<standin::DriverLaunchParams> driver_list;
    std::vector<standin::RuntimeLaunchParams> runtime_list;
};

using Caller = int (*)(void* function, const Request&);

struct Row {
    const char* name;   // without _ptsz
    const char* nested; // the driver function that a runtime function calls
    Caller call;
};

int call_driver(void* f, const Request& r)
{
    return call_symbol(f, r.handle, r.grid.x, r.grid.y, r.grid.z, r.block.x, r.block.y, r.block.z, r.shared, r.stream,
                       r.arguments, static_cast<void**>(nullptr));
}

int call_runtime(void* f, const Request& r)
{
    return call_symbol(f, r.handle, r.grid, r.block, r.arguments, static_cast<size_t>(r.shared), r.stream);
}

int call_driver_grid(void* f, const Request& r)
{
    return call_symbol(f, r.handle, r.grid.x, r.grid.y, r.stream); // cuLaunchGrid ignores the stream
}

const Row rows[] = {
    {"cuLaunchKernel", nullptr, call_driver},
    {"cuLaunchCooperativeKernel", nullptr, call_driver},
    {"cuLaunchKernelEx", nullptr,
     [](void* f, const Request& r) { return call_symbol(f, &r.config, r.handle, r.arguments, nullptr); }},
    {"cuLaunchCooperativeKernelMultiDevice", nullptr,
     [](void* f, const Request& r) {
         return call_symbol(f, r.driver_list.data(), static_cast<unsigned>(r.driver_list.size()), 0u);
     }},
    {"cuLaunch", nullptr, [](void* f, const Request& r) { return call_symbol(f, r.handle); }},
    {"cuLaunchGrid", nullptr, call_driver_grid},
    {"cuLaunchGridAsync", nullptr, call_driver_grid},
    {"cudaLaunchKernel", "cuLaunchKernel", call_runtime},
    {"__cudaLaunchKernel", "cuLaunchKernel", call_runtime}, // jumps to cudaLaunchKernel
    {"cudaLaunchCooperativeKernel", "cuLaunchCooperativeKernel", call_runtime},
    {"cudaLaunchKernelExC", "cuLaunchKernelEx",
     [](void* f, const Request& r) { return call_symbol(f, &r.config, r.handle, r.arguments); }},
    {"cudaLaunchCooperativeKernelMultiDevice", "cuLaunchCooperativeKernel",
     [](void* f, const Request& r) {
         return call_symbol(f, r.runtime_list.data(), static_cast<unsigned>(r.runtime_list.size()), 0u);
     }},
    {"stub", "cuLaunchKernel", // <<<>>>
     [](void*, const Request& r) { return launch_configured(*r.kernel, r.grid, r.block, r.shared, r.stream); }},
};

const Row& find_row(const Step& step, const std::string& function)
{
    auto row = std::ranges::find_if(rows, [&](const Row& r) { return without_suffix(function) == r.name; });
    if (row == std::end(rows))
        wrong(step, function + " does not launch kernels");
    return *row;
}

// Queries the stand-in runtime for the handle of a stub, without an API call.
void* query_runtime(const char* query, const void* stub)
{
    void* function = runtime_symbol(query);
    return function ? reinterpret_cast<void* (*)(const void*)>(function)(stub) : nullptr;
}

void fill(Request& r, const Step& step)
{
    static void* arguments[8] = {};
    r.grid = step.triple("grid");
    r.block = step.triple("block");
    r.shared = static_cast<unsigned>(step.number("smem", 0));
    r.stream = stream(step);
    r.arguments = arguments;
    r.config = {r.grid, r.block, r.shared, r.stream, nullptr, 0};
    auto devices = step.number("devices", 2);
    r.driver_list.assign(devices, {r.handle, r.grid, r.block, r.shared, r.stream, r.arguments});
    r.runtime_list.assign(devices, {r.handle, r.grid, r.block, r.arguments, r.shared, r.stream});
}

void launch_by_driver(const Step& step, const Row& row, const std::string& function, Request& request, Call& call)
{
    auto name = step.word(0);
    ready_driver();
    if (name != "null") {
        call.kernel = device_name(name);
        request.handle = handle(call.kernel, step.option("handle", "function") == "kernel" ? HandleKind::kernel
                                                                                           : HandleKind::function);
    }
    fill(request, step);
    bool legacy = row.call == call_driver_grid || function == "cuLaunch";
    if (legacy && request.handle) {
        setup("cuFuncSetBlockShape", request.handle, request.block.x, request.block.y, request.block.z);
        setup("cuFuncSetSharedSize", request.handle, request.shared);
    }
    if (function == "cuLaunch")
        request.grid = {};
    if (legacy)
        request.grid.z = 1;
    if (function == "cuLaunch" || function == "cuLaunchGrid")
        request.stream = nullptr;
}

void launch_by_runtime(const Step& step, const std::string& function, Request& request, Call& call)
{
    static const char unregistered = 0;
    auto name = step.word(0);
    request.kernel = find_kernel(name);
    if (request.kernel && request.kernel->stub) {
        call.kernel = request.kernel->device_name;
        request.handle = const_cast<void*>(request.kernel->stub);
        if (function.starts_with("__cudaLaunchKernel"))
            setup("__cudaGetKernel", &request.handle, request.kernel->stub);
    } else if (name == "unregistered")
        request.handle = const_cast<char*>(&unregistered);
    else if (name != "null")
        wrong(step, "this form has no stub for " + name);
    if (!request.kernel && function == "stub")
        wrong(step, "only a kernel can be launched by its stub");
    fill(request, step);
}

} // namespace

void launch(const Step& step)
{
    const Kernel* kernel = find_kernel(step.word(0));
    auto function = step.option("fn", runtime_major && kernel ? "stub" : "cuLaunchKernel");
    const Row& row = find_row(step, function);
    Pace pace(step);

    Request request;
    Call call =
        call_of(function == "stub" ? "cudaLaunchKernel" : function.substr(function.find_first_not_of('_')), "kernel");
    if (row.nested)
        launch_by_runtime(step, function, request, call);
    else
        launch_by_driver(step, row, function, request, call);
    call.kernels = function.find("MultiDevice") == std::string::npos ? 1 : request.driver_list.size();

    void* target = function == "stub" ? nullptr : symbol(function);
    auto results = make_calls(pace, step.number(1), [&] { return row.call(target, request); });

    // The handle is only known after the launch, because the runtime creates it at the kernel's first launch.
    if (function == "stub")
        request.handle = query_runtime("standin_runtime_handle", request.kernel->stub);
    call.handle = reinterpret_cast<uintptr_t>(request.handle);
    call.grid = request.grid;
    call.block = request.block;
    call.shared = request.shared;
    call.stream = reinterpret_cast<uintptr_t>(request.stream);
    if (!row.nested)
        return add_results(call, results, pace);

    Call nested = nested_call(call, row.nested);
    nested.handle = request.kernel
                        ? reinterpret_cast<uintptr_t>(query_runtime("standin_runtime_function", request.kernel->stub))
                        : 0;
    nested.kernels = 1;
    add_results(call, results, pace, nested, call.kernels);
}

void look_up_again(const Step& step)
{
    look_up(device_name(step.word(0)));
}

namespace {

std::atomic<uint64_t> host_calls{0};

void on_host(void*)
{
    host_calls.fetch_add(1, std::memory_order_relaxed);
}

void on_stream(void*, int, void*)
{
    host_calls.fetch_add(1, std::memory_order_relaxed);
}

} // namespace

void host_function(const Step& step)
{
    auto function = step.option("fn", runtime_major ? "cudaLaunchHostFunc" : "cuLaunchHostFunc");
    auto base = without_suffix(function);
    bool callback = base.ends_with("StreamAddCallback");
    if (!callback && !base.ends_with("LaunchHostFunc"))
        wrong(step, function + " does not run host functions");
    Pace pace(step);
    if (!is_runtime(function))
        ready_driver();
    Call call = call_of(function, "host");
    call.handle = callback ? reinterpret_cast<uintptr_t>(on_stream) : reinterpret_cast<uintptr_t>(on_host);
    void* s = stream(step);
    call.stream = reinterpret_cast<uintptr_t>(s);
    void* target = symbol(function);
    auto results = make_calls(pace, step.number(0), [&] {
        return callback ? call_symbol(target, s, on_stream, nullptr, 0u) : call_symbol(target, s, on_host, nullptr);
    });
    add_results(call, results, pace, is_runtime(function) ? "cu" + base.substr(4) : "");
}

} // namespace workload
