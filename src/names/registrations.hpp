// SPDX-License-Identifier: Apache-2.0
// Kernel registrations in a file's code: the names of host stubs, and the variables that hold the handles of stubs. All
// addresses are ELF virtual addresses.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

// A call instruction. window: number of bytes before the call that are decoded to find its arguments.
struct CallSite {
    uint64_t address = 0;
    uint32_t window = 0;
};

// A call of __cudaRegisterFunction(..., stub, ..., name, ...) or __hipRegisterFunction(..., variable, ..., name, ...).
struct Registration {
    uint64_t stub = 0;
    uint64_t name = 0; // address of the name
    CallSite site;
};

// A call of __cudaGetKernel(&variable, stub), which exists since CUDA 13.
struct HandleVariable {
    uint64_t variable = 0;
    uint64_t stub = 0;
    CallSite site;
};

struct Registrations {
    std::vector<Registration> kernels;   // sorted by stub
    std::vector<HandleVariable> handles; // sorted by variable
    uint64_t sites = 0;                  // number of calls to __cudaRegisterFunction or __hipRegisterFunction
    uint64_t read = 0; // number of these calls whose arguments were found; larger than kernels.size() if several calls
                       // register one kernel

    const Registration* kernel(uint64_t stub) const;
};

// Serializes registrations for messages between processes and for the cache on disk.
std::string encode(const Registrations& registrations);

// Returns nullopt if the bytes are not valid output of encode(). Does not check the addresses.
std::optional<Registrations> decode_registrations(std::span<const char> bytes);

// Serializes to an anonymous file (memfd). Returns an empty descriptor if the file cannot be created.
Fd to_memfd(const Registrations& registrations);
std::optional<Registrations> registrations_in(const Fd& file);

// Limits of the output of encode().
inline constexpr size_t registrations_max = 1 << 18; // maximum entries of each kind; cuBLASLt 13.0 has 32,000
inline constexpr size_t encoded_max = 2 * registrations_max * (3 * sizeof(uint64_t) + sizeof(uint32_t)) + 64;

} // namespace gpusnoop
