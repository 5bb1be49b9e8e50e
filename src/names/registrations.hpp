// SPDX-License-Identifier: Apache-2.0
// Kernel registrations in a file's code: the names of host stubs, and the variables that keep their handles. Addresses
// are the file's own virtual addresses.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

// A call, and the number of bytes before it that set its arguments.
struct CallSite {
    uint64_t address = 0;
    uint32_t window = 0;
};

// __cudaRegisterFunction(..., stub, ..., name, ...), __hipRegisterFunction(..., variable, ..., name, ...)
struct Registration {
    uint64_t stub = 0;
    uint64_t name = 0; // address of the name
    CallSite site;
};

// __cudaGetKernel(&variable, stub), of CUDA 13
struct HandleVariable {
    uint64_t variable = 0;
    uint64_t stub = 0;
    CallSite site;
};

struct Registrations {
    std::vector<Registration> kernels;   // by stub
    std::vector<HandleVariable> handles; // by variable
    uint64_t sites = 0;                  // calls of __cudaRegisterFunction
    uint64_t read = 0;                   // calls whose kernel is known; a kernel may be registered more than once

    const Registration* kernel(uint64_t stub) const;
};

// Serialized form, for messages between processes and for the cache on disk.
std::string encode(const Registrations& registrations);

// nullopt if encode() cannot have made these bytes. The addresses in them are not checked.
std::optional<Registrations> decode_registrations(std::span<const char> bytes);

// Serialized in an anonymous file (memfd); empty if it cannot be created.
Fd to_memfd(const Registrations& registrations);
std::optional<Registrations> registrations_in(const Fd& file);

// Upper bounds of what encode() produces.
inline constexpr size_t registrations_max = 1 << 18; // entries; cuBLASLt 13.0 has 32,000
inline constexpr size_t encoded_max = 2 * registrations_max * (3 * sizeof(uint64_t) + sizeof(uint32_t)) + 64;

} // namespace gpusnoop
