// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include "kernels.hpp"
#include "ptx.hpp"
#include "symbols.hpp"

#include <map>
#include <mutex>
#include <tuple>
#include <unistd.h>

namespace workload {
namespace {

// Device and contexts that a thread has prepared for driver calls. Runtime calls need no preparation.
struct ThreadDevice {
    int device = 0;
    bool current = false;
    std::vector<void*> contexts; // contexts created by the step newcontext and not yet destroyed
};
thread_local ThreadDevice thread;

std::mutex lock; // protects the variables below
bool initialized;
std::map<std::pair<Place, uint64_t>, void*> streams;
std::map<std::tuple<Place, std::string, HandleKind>, void*> handles;
std::map<std::pair<Place, std::string>, void*> modules, libraries; // by kernel name
std::map<Place, void*> events;
std::map<std::pair<Place, std::string>, void*> named_events;
void* graph; // the last executable graph

constexpr uint64_t own_stream = 1ull << 32; // own_stream + thread id: number of the stream for stream=own

// The stand-in finds any kernel in any image, so one image is enough; a real driver needs one per kernel.
struct Image {
    std::string kernels, text = "stand-in image";
};
Image image_of(const std::string& kernel)
{
    if (!on_device())
        return {};
    auto text = ptx_of(kernel);
    if (text.empty())
        skip("PTX cannot name a kernel " + kernel);
    return {kernel, text};
}

// Allows this thread to load modules during a capture, which real drivers otherwise forbid. Does nothing with the
// stand-in.
class RelaxedCaptureMode {
public:
    RelaxedCaptureMode() { exchange(); }
    ~RelaxedCaptureMode() { exchange(); }
    RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;

private:
    void exchange()
    {
        if (on_device())
            setup("cuThreadExchangeStreamCaptureMode", &mode_);
    }
    int mode_ = 2; // CU_STREAM_CAPTURE_MODE_RELAXED
};

void* module(const std::string& kernel)
{
    RelaxedCaptureMode relaxed;
    auto image = image_of(kernel);
    void*& m = modules[{place(), image.kernels}];
    if (!m && setup("cuModuleLoadData", &m, image.text.c_str()))
        fail("cuModuleLoadData failed");
    return m;
}

void* library(const std::string& kernel)
{
    RelaxedCaptureMode relaxed;
    auto image = image_of(kernel);
    void*& l = libraries[{place(), image.kernels}];
    if (!l && setup("cuLibraryLoadData", &l, image.text.c_str(), nullptr, nullptr, 0u, nullptr, nullptr, 0u))
        fail("cuLibraryLoadData failed");
    return l;
}

void* get_function(const std::string& name)
{
    void* function = nullptr;
    if (setup("cuModuleGetFunction", &function, module(name), name.c_str()))
        fail("cuModuleGetFunction failed for " + name);
    return function;
}

void* get_kernel(const std::string& name)
{
    void* kernel = nullptr;
    if (setup("cuLibraryGetKernel", &kernel, library(name), name.c_str()))
        fail("cuLibraryGetKernel failed for " + name);
    return kernel;
}

void* create_event()
{
    void* e = nullptr;
    if (runtime_major ? setup("cudaEventCreate", &e) : setup("cuEventCreate", &e, 0u))
        fail("cannot create an event");
    return e;
}

std::string error_name(int error)
{
    const char* name = nullptr;
    void* get_name = driver_symbol("cuGetErrorName");
    bool known = get_name && !call_symbol(get_name, error, &name) && name;
    return std::to_string(error) + (known ? std::string(" (") + name + ")" : "");
}

void make_current()
{
    void* context = nullptr;
    if (runtime_major) {
        if (setup("cudaSetDevice", thread.device))
            fail("cudaSetDevice failed");
    } else {
        if (int error = initialized ? 0 : setup("cuInit", 0u))
            skip("no device: cuInit failed with " + error_name(error));
        initialized = true;
        if (setup("cuDevicePrimaryCtxRetain", &context, thread.device) || setup("cuCtxSetCurrent", context))
            fail("no context for device " + std::to_string(thread.device));
    }
    thread.current = true;
}

} // namespace

int device()
{
    return thread.device;
}

void use_device(int number)
{
    std::lock_guard hold(lock);
    thread.device = number;
    thread.contexts.clear(); // the current context is replaced
    make_current();
}

Place place()
{
    return {thread.device, thread.contexts.empty() ? nullptr : thread.contexts.back()};
}

void enter_context(int number)
{
    ready_driver();
    void* context = nullptr;
    if (setup("cuCtxCreate_v2", &context, 0u, number))
        fail("cuCtxCreate_v2 failed");
    thread.contexts.push_back(context);
}

void leave_context()
{
    forget(place());
    if (setup("cuCtxDestroy_v2", thread.contexts.back()))
        fail("cuCtxDestroy_v2 failed");
    thread.contexts.pop_back();
}

void forget(const Place& destroyed)
{
    std::lock_guard hold(lock);
    std::erase_if(modules, [&](auto& entry) { return entry.first.first == destroyed; });
    std::erase_if(libraries, [&](auto& entry) { return entry.first.first == destroyed; });
    events.erase(destroyed);
    std::erase_if(named_events, [&](auto& entry) { return entry.first.first == destroyed; });
    std::erase_if(streams, [&](auto& entry) { return entry.first.first == destroyed; });
    std::erase_if(handles, [&](auto& entry) { return std::get<0>(entry.first) == destroyed; });
}

void forget(void* destroyed)
{
    std::lock_guard hold(lock);
    std::erase_if(named_events, [&](auto& entry) { return entry.second == destroyed; });
    std::erase_if(streams, [&](auto& entry) { return entry.second == destroyed; });
}

void inherit_device(int number)
{
    thread.device = number;
    if (number) { // the runtime's default is device 0
        std::lock_guard hold(lock);
        make_current();
    }
}

void ready_driver()
{
    std::lock_guard hold(lock);
    if (!thread.current)
        make_current();
}

void* stream(const Step& step, const std::string& fallback)
{
    auto text = step.option("stream", fallback);
    if (text == "legacy" || text == "per-thread")
        return reinterpret_cast<void*>(text == "legacy" ? 1ul : 2ul);
    uint64_t number = text == "own" ? own_stream + gettid() : to_number(step, text);
    if (!number)
        return nullptr;
    if (!runtime_major)
        ready_driver();
    std::lock_guard hold(lock);
    void*& s = streams[{place(), number}];
    if (!s && (runtime_major ? setup("cudaStreamCreate", &s) : setup("cuStreamCreate", &s, 0u)))
        fail("cannot create a stream");
    return s;
}

void* event()
{
    if (!runtime_major)
        ready_driver();
    std::lock_guard hold(lock);
    void*& e = events[place()];
    if (!e)
        e = create_event();
    return e;
}

void* handle(const std::string& name, HandleKind kind)
{
    ready_driver();
    std::lock_guard hold(lock);
    void*& h = handles[{place(), name, kind}];
    if (!h)
        h = kind == HandleKind::kernel ? get_kernel(name) : get_function(name);
    return h;
}

void* look_up(const std::string& name)
{
    ready_driver();
    std::lock_guard hold(lock);
    return handles[{place(), name, HandleKind::function}] = get_function(name);
}

void reload()
{
    ready_driver();
    std::lock_guard hold(lock);
    auto unload = [](auto& loaded, const char* function) {
        for (auto& [key, object] : loaded)
            if (object && key.first == place())
                setup(function, object);
        std::erase_if(loaded, [](auto& entry) { return entry.first.first == place(); });
    };
    unload(modules, "cuModuleUnload");
    unload(libraries, "cuLibraryUnload");
    std::erase_if(handles, [](auto& entry) { return std::get<0>(entry.first) == place(); });
}

void* named_event(const std::string& name)
{
    if (!runtime_major)
        ready_driver();
    std::string key = per_thread_name(name);
    std::lock_guard hold(lock);
    void*& e = named_events[{place(), key}];
    if (!e)
        e = create_event();
    return e;
}

std::string per_thread_name(const std::string& name)
{
    return name.starts_with('.') ? std::to_string(gettid()) + name : name;
}

const Kernel* find_kernel(const std::string& name)
{
    for (const Kernel& kernel : kernels())
        if (name == kernel.name)
            return &kernel;
    return nullptr;
}

std::string device_name(const std::string& kernel)
{
    const Kernel* named = find_kernel(kernel);
    return named ? named->device_name : unescaped(kernel);
}

void* last_graph()
{
    std::lock_guard hold(lock);
    return graph;
}

void set_last_graph(void* exec)
{
    std::lock_guard hold(lock);
    graph = exec;
}

} // namespace workload
