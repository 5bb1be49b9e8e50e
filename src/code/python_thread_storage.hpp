// SPDX-License-Identifier: Apache-2.0
// Where glibc keeps what belongs to a thread, and how code gets at it: on each machine.
#pragma once

#include "code/decoder.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace gpusnoop {

struct ThreadStorage {
    // The first block of keys (struct pthread, specific_1stblock), from pthread_self() on. It has been there
    // since 2.21.
    uint64_t first_block;

    // From pthread_self() to the thread pointer. code: that of pthread_self(); nullopt where it does anything else.
    // Null: both are the same.
    std::optional<uint64_t> (*thread_pointer)(const Code& code);

    // The variable of the thread's that a function returns, from the thread pointer on: of a program that is no
    // library, as Debian's Pythons are.
    std::optional<int32_t> (*returned_variable)(const Code& code);

    // All places that a function may read whose code knows where an object is, and others that it does not.
    void (*places)(const Code& code, uint64_t object, const std::function<void(uint64_t)>& found);
};

extern const ThreadStorage storage_on_x86_64, storage_on_arm64;

inline const ThreadStorage& host_storage()
{
#if defined(__aarch64__)
    return storage_on_arm64;
#else
    return storage_on_x86_64;
#endif
}

} // namespace gpusnoop
