// SPDX-License-Identifier: Apache-2.0
// The driver's objects, and what every implementation does first: count the call, and give way to what a test asked
// for.
#pragma once

#include "../abi.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

// An implementation: the thunk of the same name, and of its per-thread variants, jumps to it. See thunks.py.
#define DRIVER(name) extern "C" int impl_##name

// Part of the control surface for tests, not of CUDA.
#define CONTROL(type, name) extern "C" __attribute__((visibility("default"))) type name

namespace standin {

inline constexpr int device_count = 2;
inline constexpr int driver_version = 13000;
inline constexpr uint64_t device_memory = 16ull << 30;

struct Context {
    int device;
};

struct Capture;

struct Stream {
    const Context* owner = nullptr;
    unsigned flags = 0;
    std::atomic<bool> capturing{false};
    std::shared_ptr<Capture> capture{}; // under graph_lock
};

struct ThreadState {
    Context* stack[16];
    int depth;
    bool armed; // a result, a delay, a block or a function is waiting for the next call
    int next_result;
    uint64_t next_delay_ns;
    uint64_t next_block_ns;
    void (*next_inside)();
    bool asleep;
    unsigned next_update_result;
    unsigned shard; // which counters this thread uses, 0 until its first call
};
// Constant, and compiled with -ftls-model=initial-exec: an access is one instruction.
extern constinit thread_local ThreadState thread;
extern std::atomic<bool> initialized;

void count(Class);
int spend_armed();
void inject();

inline Context* current_context()
{
    return thread.depth ? thread.stack[thread.depth - 1] : nullptr;
}

// What a test armed goes first; then what the real driver refuses first.
inline int admit()
{
    if (thread.armed) [[unlikely]]
        if (int result = spend_armed())
            return result;
    if (!initialized.load(std::memory_order_relaxed)) [[unlikely]]
        return not_initialized;
    return current_context() ? success : invalid_context;
}

inline int begin(Class c)
{
    count(c);
    return admit();
}

// 0, 1 and 2 are the default, the legacy and the per-thread stream; nothing that small is an address.
inline bool is_object(const void* handle)
{
    return reinterpret_cast<uintptr_t>(handle) > 4096;
}

inline bool capturing(const Stream* stream)
{
    return is_object(stream) && stream->capturing.load(std::memory_order_relaxed);
}

} // namespace standin
