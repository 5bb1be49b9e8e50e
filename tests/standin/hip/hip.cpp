// SPDX-License-Identifier: Apache-2.0
// Common implementation of all functions of the stand-in libamdhip64: stores a new handle as the call's output, and
// returns success or a result set by a test.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace {

struct OutputLocation {
    int register_number; // -1: none
    int offset;
};

struct Function {
    const char* name;
    OutputLocation out, pitch;
};

constexpr uint64_t handle_stride = 1 << 30; // more than any test allocates
constexpr int not_ready = 600;

std::atomic<uint64_t> next_handle{0x7d0000000000};
thread_local int next_result = 0;
thread_local int busy = 0;
thread_local int reused_handle = 0;
thread_local bool is_nameless = false;

uint64_t* result_of(const OutputLocation& location, const uint64_t* registers)
{
    const bool none = location.register_number < 0 || !registers[location.register_number];
    return none ? nullptr
                : reinterpret_cast<uint64_t*>(registers[location.register_number] +
                                              static_cast<uint64_t>(location.offset));
}

// A kernel object: its name is a std::string at offset 0x28.
struct Kernel {
    char before[0x28];
    std::string name;
};

// Address -> handle of the physical memory mapped there.
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

// Returns a new object as the result of hipModuleGetFunction(). The offset of the kernel pointer in it differs between
// ROCm versions.
uint64_t function_named(const char* name, uint64_t kernel_offset)
{
    const auto* const kernel = new Kernel{{}, is_nameless ? "other_kernel" : name};
    char* const object = new char[256]();
    std::memcpy(object + kernel_offset, &kernel, sizeof(kernel));
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
                                 : next_handle.fetch_add(handle_stride);
    }
    if (std::string_view(function.name) == "hipMemMap")
        map(registers);
    if (uint64_t* const pitch = result_of(function.pitch, registers))
        *pitch = 512;
    return 0;
}

// Sets the result of this thread's next call; standin_hip_busy() sets how many of its next queries report a busy
// device.
void standin_hip_result(int result)
{
    next_result = result;
}

void standin_hip_busy(int queries)
{
    busy = queries;
}

// Sets the handle that this thread's next call stores, instead of a new one.
void standin_hip_handle(int handle)
{
    reused_handle = handle;
}

// Sets whether the kernel objects returned by later lookups contain a wrong name.
void standin_hip_nameless(int nameless)
{
    is_nameless = nameless;
}
}
