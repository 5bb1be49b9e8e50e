// SPDX-License-Identifier: Apache-2.0
// Kernels that programs register in ELF constructors, and call configurations of <<<>>>. As with CUDA's lazy loading, a
// kernel is loaded and looked up in the driver when it is first launched.
#include "runtime.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

namespace standin {
namespace {

constexpr int max_devices = 16;

struct Binary {
    const void* fatbin;
    void* library = nullptr;
};

struct Kernel {
    Binary* binary;
    const void* stub;
    std::string name;
    std::atomic<void*> handle{nullptr}; // CUkernel
    std::atomic<void*> functions[max_devices] = {};
    Kernel(Binary* b, const void* s, const char* n) : binary(b), stub(s), name(n) {}
};

struct Registry {
    std::shared_mutex lock;
    std::deque<Binary> binaries; // a deque: addresses stay valid
    std::deque<Kernel> kernels;
    std::unordered_map<const void*, Kernel*> by_key; // keys: stubs and handles
    std::atomic<unsigned> generation{1};             // incremented when keys are removed
};

// Never destroyed: programs register kernels before static objects are constructed, and unregister them after static
// objects are destroyed.
Registry& registry()
{
    static auto& r = *new Registry;
    return r;
}

Kernel* find(const void* key)
{
    // Cache: programs launch the same kernel repeatedly.
    static thread_local struct {
        const void* key;
        Kernel* kernel;
        unsigned generation;
    } last;
    Registry& r = registry();
    unsigned generation = r.generation.load(std::memory_order_acquire);
    if (last.key == key && last.generation == generation)
        return last.kernel;
    std::shared_lock hold(r.lock);
    auto found = r.by_key.find(key);
    if (found == r.by_key.end())
        return nullptr;
    last = {key, found->second, generation};
    return found->second;
}

int load(Kernel& kernel)
{
    if (kernel.handle)
        return success;
    Registry& r = registry();
    std::unique_lock hold(r.lock);
    if (kernel.handle)
        return success; // another thread has loaded the kernel meanwhile
    void*& library = kernel.binary->library;
    if (!library)
        if (int result = driver().cuLibraryLoadData[legacy](&library, kernel.binary->fatbin, nullptr, nullptr, 0,
                                                            nullptr, nullptr, 0))
            return result;
    void* handle = nullptr;
    if (int result = driver().cuLibraryGetKernel[legacy](&handle, library, kernel.name.c_str()))
        return result;
    r.by_key[handle] = &kernel;
    kernel.handle = handle;
    return success;
}

} // namespace

int find_function(const void* key, void** function)
{
    Kernel* kernel = find(key);
    if (!kernel)
        return invalid_device_function;
    auto& slot = kernel->functions[current_device()];
    if ((*function = slot.load(std::memory_order_acquire))) [[likely]]
        return success;
    if (int result = load(*kernel))
        return result;
    if (int result = driver().cuKernelGetFunction[legacy](function, kernel->handle))
        return result;
    slot.store(*function, std::memory_order_release);
    return success;
}

} // namespace standin

using namespace standin;

extern "C" void** __cudaRegisterFatBinary(const void* wrapper)
{
    // The wrapper in .nvFatBinSegment has a magic number, a version, and a pointer to the device code.
    const void* fatbin = static_cast<const void* const*>(wrapper)[1];
    Registry& r = registry();
    std::unique_lock hold(r.lock);
    return reinterpret_cast<void**>(&r.binaries.emplace_back(Binary{fatbin}));
}

extern "C" void __cudaRegisterFunction(void** binary, const void* stub, char*, const char* name, int, void*, void*,
                                       void*, void*, int*)
{
    Registry& r = registry();
    std::unique_lock hold(r.lock);
    r.by_key[stub] = &r.kernels.emplace_back(reinterpret_cast<Binary*>(binary), stub, name);
}

extern "C" void __cudaUnregisterFatBinary(void** binary)
{
    Registry& r = registry();
    std::unique_lock hold(r.lock);
    std::erase_if(r.by_key, [&](auto& entry) { return entry.second->binary == reinterpret_cast<Binary*>(binary); });
    r.generation++;
}

namespace {

struct Configuration {
    Dim3 grid, block;
    size_t shared;
    void* stream;
};
constinit thread_local Configuration configurations[8] = {};
constinit thread_local unsigned configuration_depth = 0;

} // namespace

extern "C" unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared, void* stream)
{
    if (configuration_depth == std::size(configurations))
        return out_of_memory;
    configurations[configuration_depth++] = {grid, block, shared, stream};
    return success;
}

RUNTIME(__cudaPopCallConfiguration)(Dim3* grid, Dim3* block, size_t* shared, void** stream)
{
    if (!configuration_depth)
        return finish(9); // cudaErrorInvalidConfiguration
    auto& top = configurations[--configuration_depth];
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared;
    *stream = top.stream;
    return finish(success);
}

// Up to CUDA 12, the handle is the stub's address. In CUDA 13, the handle is opaque, or the stub's address if there is
// no driver.
RUNTIME(__cudaGetKernel)(const void** handle, const void* stub)
{
    *handle = stub;
    Kernel* kernel = find(stub);
    if (!kernel)
        return finish(invalid_device_function);
    if (CUDART >= 13 && !prepare() && !load(*kernel))
        *handle = kernel->handle;
    return finish(success);
}

// For tests, without an API call: the CUfunction that a launch of `stub` on this thread's device passes to the driver,
// and the handle that __cudaGetKernel returned for it. Null if the kernel is not loaded yet.
extern "C" void* standin_runtime_function(const void* stub)
{
    Kernel* kernel = find(stub);
    return kernel ? kernel->functions[current_device()].load() : nullptr;
}

extern "C" const void* standin_runtime_handle(const void* stub)
{
    Kernel* kernel = find(stub);
    return kernel && CUDART >= 13 && kernel->handle ? kernel->handle.load() : stub;
}
