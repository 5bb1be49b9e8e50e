// SPDX-License-Identifier: Apache-2.0
// The driver's objects, and the common start of every implementation, which counts the call and applies a result, delay
// or function armed by a test.
#pragma once

#include "../abi.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

// Defines an implementation. The thunk of the same name, and those of its per-thread variants, jump to it (thunks.py).
#define DRIVER(name) extern "C" int impl_##name

// Defines an implementation that only returns the value of an expression.
#define RETURNS(name, parameters, ...)                                                                                 \
    DRIVER(name) parameters                                                                                            \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }

// Defines a control function for tests, which is not part of CUDA.
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
    std::atomic<bool> capturing{false};
    std::shared_ptr<Capture> capture{}; // protected by graph_lock
};

struct ThreadState {
    Context* stack[16];
    int depth;
    bool armed; // one of the next_ fields below is set
    int next_result;
    uint64_t next_delay_ns;
    uint64_t next_block_ns;
    void (*next_inside)();
    bool asleep;
    unsigned next_update_result;
    unsigned shard; // index + 1 of this thread's counters; 0 until its first call
};
// Constant-initialized, and compiled with -ftls-model=initial-exec: an access is one instruction.
extern constinit thread_local ThreadState thread;
extern std::atomic<bool> initialized;

void count(Class);
int apply_armed();
void inject();

inline Context* current_context()
{
    return thread.depth ? thread.stack[thread.depth - 1] : nullptr;
}

// Applies the result, delay or function that a test armed, then makes the checks that the real driver makes first.
inline int admit()
{
    if (thread.armed) [[unlikely]]
        if (int result = apply_armed())
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

// Counts a call, and unless it fails already, returns the result of `body`, which holds the lock.
template<class Body>
int locked_call(Class c, std::mutex& lock, Body body)
{
    if (int result = begin(c))
        return result;
    std::lock_guard hold(lock);
    return body();
}

// Returns false for the handles 0, 1 and 2, which mean the default, legacy and per-thread stream.
inline bool is_object(const void* handle)
{
    return reinterpret_cast<uintptr_t>(handle) > 4096;
}

inline bool capturing(const Stream* stream)
{
    return is_object(stream) && stream->capturing.load(std::memory_order_relaxed);
}

} // namespace standin
