// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <dlfcn.h>
#include <memory>
#include <sys/mman.h>

namespace {

// The ABI leaves the upper half of a register or stack slot with a 32-bit argument undefined. This function fills that
// half with garbage, because a tracer must not read it.
uint64_t dirty(uint32_t value)
{
    return 0xdeadbeef'00000000 | value;
}

struct Dim3 {
    uint32_t x, y, z;
};

Dim3 dim3(const Triple& t)
{
    return {t[0], t[1], t[2]};
}

// Both CUlaunchConfig and cudaLaunchConfig_t: they differ only in the width of smem, which padding compensates.
struct LaunchConfig {
    Triple grid, block;
    uint64_t smem;
    uint64_t stream;
    void* attributes;
    uint64_t attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

struct DriverLaunchParams { // CUDA_LAUNCH_PARAMS
    uint64_t function;
    Triple grid, block;
    uint32_t smem;
    uint64_t stream;
    void** parameters;
};
static_assert(sizeof(DriverLaunchParams) == 56);

struct RuntimeLaunchParams { // cudaLaunchParams
    uint64_t function;
    Triple grid, block;
    void** parameters;
    uint64_t smem;
    uint64_t stream;
};
static_assert(sizeof(RuntimeLaunchParams) == 56);

LaunchConfig config(const Arguments& a)
{
    return {a.grid, a.block, a.smem, a.stream, nullptr, 0};
}

// Integers are passed as 64-bit values, which fit a register or stack slot.
template<class... A>
int call(void* function, A... arguments)
{
    return reinterpret_cast<int (*)(A...)>(function)(arguments...);
}

// Handles of objects that do not exist. They point to zeros, because drivers since 580 read the stream object before
// they check for a missing cuInit(). Zeros are an unknown stream.
uint64_t handle(uint32_t number)
{
    constexpr size_t object_size = 0x4000, max_objects = 1000;
    static const auto zeros =
        reinterpret_cast<uint64_t>(mmap(nullptr, object_size * max_objects, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    return zeros + object_size * number;
}

using Make = int (*)(void* function, const Arguments&);

class Collection {
public:
    explicit Collection(void* library) : library_(library) {}

    void kernel(const std::string& function, Make make) { add(function, "kernel", distinct(), make); }
    void graph(const std::string& function, Make make) { add(function, "graph", plain(), make); }
    void host(const std::string& function, Make make) { add(function, "host", plain(), make); }

    void kernel_on_streams(const std::string& function, Make make)
    {
        kernel(function, make);
        for (uint64_t stream : {0, 1, 2}) { // default, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD
            Arguments a = distinct();
            a.stream = stream;
            add(function, "kernel", a, make);
        }
    }

    // Launch functions of CUDA before 4.0: separate calls set the function's block shape and shared memory.
    void legacy_kernel(const std::string& function, bool has_grid, bool has_stream, Make make)
    {
        Arguments a = distinct();
        a.grid = has_grid ? Triple{a.grid[0], a.grid[1], 1} : Triple{1, 1, 1};
        a.stream = has_stream ? a.stream : 0;
        void* set_block = dlsym(library_, "cuFuncSetBlockShape");
        void* set_smem = dlsym(library_, "cuFuncSetSharedSize");
        void* launch = dlsym(library_, function.c_str());
        if (!set_block || !set_smem || !launch)
            return;
        calls.push_back({function, "kernel", {a}, [=] {
                             call(set_block, a.handle, dirty(a.block[0]), dirty(a.block[1]), dirty(a.block[2]));
                             call(set_smem, a.handle, dirty(a.smem));
                             return make(launch, a);
                         }});
    }

    // One call that launches on several devices.
    template<class Params>
    void kernels(const std::string& function, Params (*params)(const Arguments&))
    {
        void* address = dlsym(library_, function.c_str());
        if (!address)
            return;
        std::vector<Arguments> all{distinct(), distinct(), distinct()};
        auto list = std::make_shared<std::vector<Params>>();
        for (const Arguments& a : all)
            list->push_back(params(a));
        calls.push_back({function, "kernel", all, [=] {
                             return call(address, list->data(), dirty(static_cast<uint32_t>(list->size())), dirty(0));
                         }});
    }

    std::vector<Call> calls;

private:
    // Arguments that differ from those of all other calls.
    Arguments distinct()
    {
        const uint32_t n = ++number_;
        return {handle(2 * n), {1000 + n, 200 + n, 3 + n}, {8 + n, 4, 2}, 1024 + 16 * n, handle(2 * n + 1)};
    }

    Arguments plain()
    {
        const Arguments a = distinct();
        return {a.handle, {}, {}, 0, a.stream};
    }

    void add(const std::string& function, const char* kind, const Arguments& a, Make make)
    {
        if (void* address = dlsym(library_, function.c_str()))
            calls.push_back({function, kind, {a}, [=] { return make(address, a); }});
    }

    void* library_;
    uint32_t number_ = 0;
};

void add_driver_calls(Collection& c, const std::string& suffix)
{
    c.kernel_on_streams("cuLaunchKernel" + suffix, [](void* f, const Arguments& a) {
        return call(f, a.handle, dirty(a.grid[0]), dirty(a.grid[1]), dirty(a.grid[2]), dirty(a.block[0]),
                    dirty(a.block[1]), dirty(a.block[2]), dirty(a.smem), a.stream, nullptr, nullptr);
    });
    c.kernel("cuLaunchCooperativeKernel" + suffix, [](void* f, const Arguments& a) {
        return call(f, a.handle, dirty(a.grid[0]), dirty(a.grid[1]), dirty(a.grid[2]), dirty(a.block[0]),
                    dirty(a.block[1]), dirty(a.block[2]), dirty(a.smem), a.stream, nullptr);
    });
    c.kernel_on_streams("cuLaunchKernelEx" + suffix, [](void* f, const Arguments& a) {
        const LaunchConfig parameters = config(a);
        return call(f, &parameters, a.handle, nullptr, nullptr);
    });
    c.graph("cuGraphLaunch" + suffix, [](void* f, const Arguments& a) { return call(f, a.handle, a.stream); });
    c.host("cuLaunchHostFunc" + suffix,
           [](void* f, const Arguments& a) { return call(f, a.stream, a.handle, nullptr); });
    c.host("cuLaunchHostFunc_v2" + suffix,
           [](void* f, const Arguments& a) { return call(f, a.stream, a.handle, nullptr, dirty(0)); });
    c.host("cuStreamAddCallback" + suffix,
           [](void* f, const Arguments& a) { return call(f, a.stream, a.handle, nullptr, dirty(0)); });
}

void add_legacy_driver_calls(Collection& c)
{
    c.legacy_kernel("cuLaunch", false, false, [](void* f, const Arguments& a) { return call(f, a.handle); });
    c.legacy_kernel("cuLaunchGrid", true, false,
                    [](void* f, const Arguments& a) { return call(f, a.handle, dirty(a.grid[0]), dirty(a.grid[1])); });
    c.legacy_kernel("cuLaunchGridAsync", true, true, [](void* f, const Arguments& a) {
        return call(f, a.handle, dirty(a.grid[0]), dirty(a.grid[1]), a.stream);
    });
    c.kernels<DriverLaunchParams>("cuLaunchCooperativeKernelMultiDevice", [](const Arguments& a) {
        return DriverLaunchParams{a.handle, a.grid, a.block, a.smem, a.stream, nullptr};
    });
}

void add_runtime_calls(Collection& c, const std::string& suffix)
{
    const Make launch = [](void* f, const Arguments& a) {
        return call(f, a.handle, dim3(a.grid), dim3(a.block), nullptr, uint64_t{a.smem}, a.stream);
    };
    c.kernel_on_streams("cudaLaunchKernel" + suffix, launch);
    c.kernel("__cudaLaunchKernel" + suffix, launch); // calls cudaLaunchKernel; still one launch
    c.kernel("cudaLaunchCooperativeKernel" + suffix, launch);
    c.kernel("cudaLaunchKernelExC" + suffix, [](void* f, const Arguments& a) {
        const LaunchConfig parameters = config(a);
        return call(f, &parameters, a.handle, nullptr);
    });
    c.graph("cudaGraphLaunch" + suffix, [](void* f, const Arguments& a) { return call(f, a.handle, a.stream); });
    c.host("cudaLaunchHostFunc" + suffix,
           [](void* f, const Arguments& a) { return call(f, a.stream, a.handle, nullptr); });
    c.host("cudaStreamAddCallback" + suffix,
           [](void* f, const Arguments& a) { return call(f, a.stream, a.handle, nullptr, dirty(0)); });
}

} // namespace

std::vector<Call> calls_of(void* library)
{
    Collection collection(library);
    for (const char* suffix : {"", "_ptsz"}) {
        add_driver_calls(collection, suffix);
        add_runtime_calls(collection, suffix);
    }
    add_legacy_driver_calls(collection);
    collection.kernels<RuntimeLaunchParams>("cudaLaunchCooperativeKernelMultiDevice", [](const Arguments& a) {
        return RuntimeLaunchParams{a.handle, a.grid, a.block, nullptr, a.smem, a.stream};
    });
    return std::move(collection.calls);
}
