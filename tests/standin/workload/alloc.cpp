// SPDX-License-Identifier: Apache-2.0
// Allocating and freeing, by every function that can, and contexts that take their memory with them. A new function is
// a row.
#include "../abi_memory.hpp"
#include "calls.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace workload {
namespace {

struct Wanted {
    void* address = nullptr; // out; in, where it is to be registered
    size_t bytes = 0, width = 0, height = 0;
    void* stream = nullptr;
    standin::Location location = {standin::Location::device, 0};
};
using Caller = int (*)(void* function, Wanted&);

struct Row {
    const char* name;     // in scripts
    const char* function; // the exported symbol, without _ptsz
    const char* what;
    const char* free_by;
    Caller call;
    const char* nested = "";
};

int plain(void* f, Wanted& w)
{
    return call_symbol(f, &w.address, w.bytes, w.stream); // without Async the stream is not looked at
}

int with_flags(void* f, Wanted& w)
{
    return call_symbol(f, &w.address, w.bytes, 1u);
}

int from_pool(void* f, Wanted& w)
{
    return call_symbol(f, &w.address, w.bytes, static_cast<void*>(nullptr), w.stream);
}

int pitched(void* f, Wanted& w)
{
    size_t pitch = 0;
    return call_symbol(f, &w.address, &pitch, w.width, w.height, 4u);
}

int registered(void* f, Wanted& w)
{
    return call_symbol(f, w.address, w.bytes, 0u);
}

int physical(void* f, Wanted& w)
{
    standin::AllocationProperties properties = {1, 0, w.location, nullptr, 0};
    return call_symbol(f, &w.address, w.bytes, &properties, 0ull);
}

int array(void* f, Wanted& w)
{
    constexpr unsigned unsigned_bytes = 1;
    standin::ArrayDescriptor descriptor = {w.width, w.height, unsigned_bytes, 1};
    return call_symbol(f, &w.address, &descriptor);
}

#define SAME(name) name, name
const Row rows[] = {
    {SAME("cuMemAlloc_v2"), "device", "cuMemFree_v2", plain},
    {SAME("cuMemAllocPitch_v2"), "device", "cuMemFree_v2", pitched},
    {SAME("cuMemAllocManaged"), "managed", "cuMemFree_v2", with_flags},
    {SAME("cuMemAllocAsync"), "device", "cuMemFreeAsync", plain},
    {SAME("cuMemAllocFromPoolAsync"), "device", "cuMemFreeAsync", from_pool},
    {SAME("cuMemHostAlloc"), "pinned", "cuMemFreeHost", with_flags},
    {SAME("cuMemAllocHost_v2"), "pinned", "cuMemFreeHost", plain},
    {SAME("cuMemHostRegister_v2"), "registered", "cuMemHostUnregister", registered},
    {"cuMemMap", "cuMemCreate", "vmm", "cuMemRelease", physical},
    {"array", "cuArrayCreate_v2", "array", "cuArrayDestroy", array},
    {SAME("cudaMalloc"), "device", "cudaFree", plain, "cuMemAlloc_v2"},
    {SAME("cudaMallocPitch"), "device", "cudaFree", pitched, "cuMemAllocPitch_v2"},
    {SAME("cudaMallocManaged"), "managed", "cudaFree", with_flags, "cuMemAllocManaged"},
    {SAME("cudaMallocAsync"), "device", "cudaFreeAsync", plain, "cuMemAllocAsync"},
    {SAME("cudaMallocFromPoolAsync"), "device", "cudaFreeAsync", from_pool, "cuMemAllocFromPoolAsync"},
    {SAME("cudaMallocHost"), "pinned", "cudaFreeHost", plain, "cuMemHostAlloc"},
    {SAME("cudaHostAlloc"), "pinned", "cudaFreeHost", with_flags, "cuMemHostAlloc"},
    {SAME("cudaHostRegister"), "registered", "cudaHostUnregister", registered, "cuMemHostRegister_v2"},
};

struct FreeRow {
    const char* name;
    const char* nested = "";
};
const FreeRow free_rows[] = {
    {"cuMemFree_v2"},
    {"cuMemFreeAsync"},
    {"cuMemFreeHost"},
    {"cuMemHostUnregister"},
    {"cuMemRelease"},
    {"cuArrayDestroy"},
    {"cudaFree", "cuMemFree_v2"},
    {"cudaFreeAsync", "cuMemFreeAsync"},
    {"cudaFreeHost", "cuMemFreeHost"},
    {"cudaHostUnregister", "cuMemHostUnregister"},
};

const Row* find_row(const std::string& function)
{
    auto row = std::ranges::find_if(rows, [&](const Row& r) { return without_suffix(function) == r.name; });
    return row == std::end(rows) ? nullptr : row;
}

bool is_async(const std::string& function)
{
    return function.find("Async") != std::string::npos;
}

void* touched(size_t bytes)
{
    void* memory = malloc(bytes);
    return memory ? memset(memory, 1, bytes) : nullptr;
}

// Private pages of a file, each of them read: memory that nobody allocated.
void* mapped_file(size_t bytes)
{
    char name[] = "/tmp/workload-XXXXXX";
    int fd = mkstemp(name);
    void* memory = fd < 0 || ftruncate(fd, static_cast<off_t>(bytes))
                       ? MAP_FAILED
                       : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        fail(std::string("cannot map ") + name);
    unlink(name);
    close(fd);
    for (size_t i = 0; i < bytes; i += 4096)
        static_cast<void>(static_cast<volatile char*>(memory)[i]);
    return memory;
}

Side side_of(const Row& row, const Wanted& wanted)
{
    auto is = [&](const char* what) { return !strcmp(row.what, what); };
    if (is("managed"))
        return Side::unknown;
    bool on_host = is("pinned") || is("registered") || wanted.location.type == standin::Location::host;
    return on_host ? Side::host : is("array") ? Side::array : Side::device;
}

// Physical memory gets an address.
void map(Memory& memory)
{
    struct {
        standin::Location location = {standin::Location::device, 0};
        int flags = 3;
    } access;
    memory.physical = std::exchange(memory.address, nullptr);
    setup("cuMemAddressReserve", &memory.address, memory.bytes, 0ull, nullptr, 0ull);
    setup("cuMemMap", memory.address, memory.bytes, 0ull, memory.physical, 0ull);
    setup("cuMemSetAccess", memory.address, memory.bytes, &access, static_cast<size_t>(1));
}

// Nothing, where the call failed.
std::optional<Memory> allocate(const Row& row, const std::string& function, Wanted& wanted, const Pace& pace)
{
    if (!is_runtime(function))
        ready_driver();
    bool registers = row.call == registered;
    if (registers)
        wanted.address = touched(wanted.bytes);
    Call call = call_of(function, "alloc");
    call.synchronous = !is_async(function);
    call.stream = is_async(function) ? reinterpret_cast<uintptr_t>(wanted.stream) : 0;
    call.data = Data{.bytes = wanted.bytes, .destination = row.what};
    void* target = symbol(function);
    auto results = make_calls<Timed::yes>(pace, 1, [&] { return row.call(target, wanted); });
    add_results(call, results, pace, row.nested);
    if (!results[0].count) {
        if (registers)
            free(wanted.address);
        return {};
    }
    Memory memory = {.what = row.what,
                     .side = side_of(row, wanted),
                     .address = wanted.address,
                     .bytes = wanted.bytes,
                     .free_by = row.free_by,
                     .place = place()};
    if (row.call == physical)
        map(memory);
    return memory;
}

bool free_by(const FreeRow& row, const std::string& function, const Step& step, const Memory& memory)
{
    Pace pace(step);
    if (!is_runtime(function))
        ready_driver();
    Call call = call_of(function, "free");
    call.synchronous = !is_async(function);
    void* s = is_async(function) ? stream(step) : nullptr;
    call.stream = reinterpret_cast<uintptr_t>(s);
    call.data = Data{.bytes = memory.bytes, .destination = memory.what};
    void* target = symbol(function);
    void* address = memory.physical ? memory.physical : memory.address;
    if (memory.physical)
        setup("cuMemUnmap", memory.address, memory.bytes);
    auto results = make_calls<Timed::yes>(pace, 1, [&] { return call_symbol(target, address, s); });
    add_results(call, results, pace, row.nested);
    if (memory.physical)
        setup("cuMemAddressFree", memory.address, memory.bytes);
    bool freed = results[0].count;
    if (freed && memory.what == "registered")
        free(memory.address);
    return freed;
}

} // namespace

Memory allocate_default(Side side, size_t bytes)
{
    static const Step nothing;
    const Row* row = find_row(side == Side::array ? "array" : runtime_major ? "cudaMalloc" : "cuMemAlloc_v2");
    Wanted wanted{.bytes = bytes, .width = bytes, .height = 1};
    auto memory = allocate(*row, row->function, wanted, Pace(nothing));
    if (!memory)
        fail("no memory for copies");
    return *memory;
}

// alloc NAME BYTES [fn=FUNCTION] [stream=N] [width=W height=H] [location=host]
void alloc(const Step& step)
{
    auto name = step.word(0);
    auto function = step.option("fn", runtime_major ? "cudaMalloc" : "cuMemAlloc_v2");
    Wanted wanted{.bytes = step.number(1)};
    if (function == "host" || function == "mmap") {
        void* address = function == "host" ? touched(wanted.bytes) : mapped_file(wanted.bytes);
        return remember(name, {.what = "host",
                               .side = Side::host,
                               .address = address,
                               .bytes = wanted.bytes,
                               .free_by = function == "host" ? "free" : "munmap"});
    }
    const Row* row = find_row(function);
    if (!row)
        wrong(step, "nothing allocates by " + function);
    wanted.height = step.number("height", 1);
    wanted.width = step.number("width", wanted.bytes / std::max<size_t>(wanted.height, 1));
    if (wanted.width * wanted.height != wanted.bytes)
        wrong(step, "width x height is not " + step.word(1));
    if (step.option("location", "device") == "host")
        wanted.location = {standin::Location::host, 0};
    else
        wanted.location.id = device();
    wanted.stream = stream(step);
    if (auto memory = allocate(*row, row->function + suffix(function), wanted, Pace(step)))
        remember(name, *memory);
}

// free NAME [fn=FUNCTION] [stream=N]
void free_memory(const Step& step)
{
    Memory memory = take(step, step.word(0));
    auto function = step.option("fn", memory.free_by);
    if (function == "free")
        return free(memory.address);
    if (function == "munmap")
        return static_cast<void>(munmap(memory.address, memory.bytes));
    auto row = std::ranges::find_if(free_rows, [&](const FreeRow& r) { return without_suffix(function) == r.name; });
    if (row == std::end(free_rows))
        wrong(step, "nothing frees by " + function);
    if (!free_by(*row, function, step, memory))
        remember(step.word(0), memory);
}

void reset_device(const Step&)
{
    if (runtime_major)
        setup("cudaDeviceReset");
    else {
        ready_driver();
        setup("cuDevicePrimaryCtxReset_v2", device());
    }
    Place primary{device(), nullptr};
    forget(primary);
    forget_memory(primary);
}

void new_context(const Step&)
{
    enter_context();
}

void destroy_context(const Step& step)
{
    if (!place().second)
        wrong(step, "this thread made no context");
    forget_memory(place());
    leave_context();
}

} // namespace workload
