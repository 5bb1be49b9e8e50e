// SPDX-License-Identifier: Apache-2.0
// What every function of the stand-in libamdhip64 does: it stores a new handle where its caller wants a result, and
// returns what has been ordered.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace {

struct Place {
    int register_number; // -1: none
    int offset;
};

struct Function {
    const char* name;
    Place out, pitch;
};

constexpr uint64_t between_handles = 1 << 30; // more than any test allocates
constexpr int not_ready = 600;

std::atomic<uint64_t> next_handle{0x7d0000000000};
thread_local int next_result = 0;
thread_local int busy = 0;
thread_local int reused_handle = 0;
thread_local bool is_nameless = false;

uint64_t* result_of(const Place& place, const uint64_t* registers)
{
    const bool none = place.register_number < 0 || !registers[place.register_number];
    return none ? nullptr
                : reinterpret_cast<uint64_t*>(registers[place.register_number] + static_cast<uint64_t>(place.offset));
}

// A kernel's name in HIP's words: a string object behind 0x28 bytes of something else.
struct Kernel {
    char before[0x28];
    std::string name;
};

// By address, the handle of the physical memory that is mapped there.
std::mutex mappings_lock;
std::map<uint64_t, uint64_t> mappings;

// hipMemMap(address, bytes, offset, handle, flags)
void map(const uint64_t* registers)
{
    const std::lock_guard guard(mappings_lock);
    mappings[registers[0]] = registers[3];
}

// hipMemRetainAllocationHandle(handle, address)
uint64_t mapped_at(uint64_t address)
{
    const std::lock_guard guard(mappings_lock);
    return mappings[address];
}

// What hipModuleGetFunction() returns: the kernel is at another place in each ROCm.
uint64_t function_named(const char* name, uint64_t kernel_at)
{
    const auto* const kernel = new Kernel{{}, is_nameless ? "somebody_else" : name};
    char* const object = new char[256]();
    std::memcpy(object + kernel_at, &kernel, sizeof(kernel));
    return reinterpret_cast<uint64_t>(object);
}

} // namespace

extern "C" {

extern const Function standin_hip_functions[];
extern const uint64_t standin_hip_kernel;

[[gnu::visibility("hidden")]] int standin_hip(unsigned number, const uint64_t* registers)
{
    const Function& function = standin_hip_functions[number];
    if (next_result) {
        const int result = next_result;
        next_result = 0;
        return result;
    }
    if (busy && std::string_view(function.name).find("Query") != std::string_view::npos) {
        busy--;
        return not_ready;
    }
    if (uint64_t* const out = result_of(function.out, registers)) {
        const std::string_view name = function.name;
        if (name == "hipModuleGetFunction")
            *out = function_named(reinterpret_cast<const char*>(registers[2]), standin_hip_kernel);
        else if (name == "hipMemRetainAllocationHandle")
            *out = mapped_at(registers[1]);
        else
            *out = reused_handle ? static_cast<uint64_t>(std::exchange(reused_handle, 0))
                                 : next_handle.fetch_add(between_handles);
    }
    if (std::string_view(function.name) == "hipMemMap")
        map(registers);
    if (uint64_t* const pitch = result_of(function.pitch, registers))
        *pitch = 512;
    return 0;
}

// Of the calling thread: what its next call returns, and how many queries from now on say that the device is busy.
void standin_hip_result(int result)
{
    next_result = result;
}

void standin_hip_busy(int queries)
{
    busy = queries;
}

// Of the calling thread: the handle that its next call stores in place of a new one.
void standin_hip_handle(int handle)
{
    reused_handle = handle;
}

// Whether kernels that it is asked for from now on are called something else in their objects.
void standin_hip_nameless(int it_is)
{
    is_nameless = it_is;
}
}
