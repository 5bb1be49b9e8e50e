// SPDX-License-Identifier: Apache-2.0
// Activity records. The tables have one row per function that the workloads of tests/gpu call; other functions have no
// records.
#include "records.hpp"

#include <dlfcn.h>
#include <mutex>
#include <string>
#include <unordered_map>

namespace standin {
namespace {

using cupti::Kind;

enum Direction : uint8_t { h2d = 1, d2h = 2, d2d = 8 };
enum MemoryKind { pinned = 2, device = 3, managed = 5 };

struct Row {
    Kind kind;
    int category;    // Direction or MemoryKind
    int bytes;       // index of the argument with the number of elements or, if the call frees memory, the address
    int unit = 1;    // bytes per element
    int stream = -1; // index of the stream argument; -1: none
    int operation = 0;
};

const std::unordered_map<std::string, Row> rows = {
    {"cuMemcpyHtoD_v2", {Kind::memcpy, h2d, 2}},
    {"cuMemcpyHtoDAsync_v2", {Kind::memcpy, h2d, 2, 1, 3}},
    {"cuMemcpyDtoH_v2", {Kind::memcpy, d2h, 2}},
    {"cuMemcpyDtoHAsync_v2", {Kind::memcpy, d2h, 2, 1, 3}},
    {"cuMemcpyDtoD_v2", {Kind::memcpy, d2d, 2}},
    {"cuMemcpyDtoDAsync_v2", {Kind::memcpy, d2d, 2, 1, 3}},
    {"cuMemsetD8_v2", {Kind::memset, 0, 2}},
    {"cuMemsetD8Async", {Kind::memset, 0, 2, 1, 3}},
    {"cuMemsetD32_v2", {Kind::memset, 0, 2, 4}},
    {"cuMemAlloc_v2", {Kind::memory, device, 1, 1, -1, cupti::allocation}},
    {"cuMemAllocAsync", {Kind::memory, device, 1, 1, 2, cupti::allocation}},
    {"cuMemAllocManaged", {Kind::memory, managed, 1, 1, -1, cupti::allocation}},
    {"cuMemAllocHost_v2", {Kind::memory, pinned, 1, 1, -1, cupti::allocation}},
    {"cuMemHostAlloc", {Kind::memory, pinned, 1, 1, -1, cupti::allocation}},
    {"cuMemFree_v2", {Kind::memory, 0, 0, 1, -1, cupti::release}},
    {"cuMemFreeAsync", {Kind::memory, 0, 0, 1, 1, cupti::release}},
    {"cuMemFreeHost", {Kind::memory, 0, 0, 1, -1, cupti::release}},
};

// Sizes of held memory, by address, because calls that free memory only pass the address.
class Held {
public:
    void add(const cupti::Memory& memory)
    {
        std::lock_guard hold(lock_);
        held_[memory.address] = memory;
    }
    bool remove(cupti::Memory& memory)
    {
        std::lock_guard hold(lock_);
        auto found = held_.extract(memory.address);
        if (found) {
            memory.memory = found.mapped().memory;
            memory.bytes = found.mapped().bytes;
        }
        return bool(found);
    }

private:
    std::mutex lock_;
    std::unordered_map<uint64_t, cupti::Memory> held_;
};

Held& held()
{
    static Held& all = *new Held; // never destroyed: programs may free memory in their own destructors
    return all;
}

bool capturing(uint64_t stream)
{
    static auto is_capturing = reinterpret_cast<int (*)(uint64_t)>(driver_function("standin_is_capturing"));
    return is_capturing(stream);
}

// Strips the suffix of per-thread variants.
std::string base_of(std::string name)
{
    for (const char* suffix : {"_ptsz", "_ptds"})
        if (name.ends_with(suffix))
            name.resize(name.size() - 5);
    return name;
}

// Indexes of the kernel and stream arguments; -1 if the function launches nothing.
struct Launch {
    int kernel = -1, stream = -1;
};
Launch launch_of(const std::string& name)
{
    if (name == "cuLaunchKernel" || name == "cuLaunchCooperativeKernel")
        return {0, 8};
    return {};
}

} // namespace

void* driver_function(const char* name)
{
    static void* driver = [] {
        void* open = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        return open ? open : dlopen("$ORIGIN/../libcuda.so.1", RTLD_NOW); // for callers that only need names
    }();
    return driver ? dlsym(driver, name) : nullptr;
}

const char* kernel_of(const TracedCall& call, const char* name)
{
    static auto get_name = reinterpret_cast<int (*)(const char**, void*)>(driver_function("cuFuncGetName"));
    Launch launch = launch_of(base_of(name));
    const char* kernel = nullptr;
    if (launch.kernel >= 0)
        get_name(&kernel, reinterpret_cast<void*>(call.argument(launch.kernel)));
    return kernel;
}

void records_of(const TracedCall& call, const char* name, const std::function<void(const AnyRecord&)>& each)
{
    static auto kernels = reinterpret_cast<uint64_t (*)(uint64_t)>(driver_function("standin_graph_kernels"));
    std::string base = base_of(name);
    if (Launch launch = launch_of(base); launch.kernel >= 0 && !capturing(call.argument(launch.stream)))
        each({.any = {Kind::concurrent_kernel}});
    if (base == "cuGraphLaunch")
        for (uint64_t left = kernels(call.argument(0)); left; left--)
            each({.any = {Kind::concurrent_kernel}});
    auto found = rows.find(base);
    if (found == rows.end())
        return;
    const Row& row = found->second;
    if (row.stream >= 0 && capturing(call.argument(row.stream)))
        return;
    uint64_t bytes = call.argument(row.bytes) * row.unit;
    if (row.kind == Kind::memcpy)
        return each({.copy = {row.kind, static_cast<uint8_t>(row.category), 0, 0, 0, bytes}});
    if (row.kind == Kind::memset)
        return each({.set = {row.kind, 0, bytes}});
    cupti::Memory memory = {row.kind, row.operation, row.category, 0, 0, 0};
    if (row.operation == cupti::allocation) {
        memory.address = *reinterpret_cast<uint64_t*>(call.argument(0));
        memory.bytes = bytes;
        held().add(memory);
        each({.memory = memory});
    } else if (memory.address = call.argument(row.bytes); memory.address && held().remove(memory))
        each({.memory = memory});
}

} // namespace standin
