// SPDX-License-Identifier: Apache-2.0
// What a file's code says about its kernels: which host stub is registered under which name, and which variable keeps
// the handle of which stub. All addresses are in the file's own numbering.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

// A call, and how many bytes of code in front of it say what its arguments are.
struct CallSite {
    uint64_t address = 0;
    uint32_t window = 0;
};

// __cudaRegisterFunction(..., stub, ..., name, ...), __hipRegisterFunction(..., variable, ..., name, ...)
struct Registration {
    uint64_t stub = 0;
    uint64_t name = 0; // where it lies
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
    uint64_t read = 0;                   // those that say which kernel; some kernels are registered more than once

    const Registration* kernel(uint64_t stub) const;
};

// As bytes: between the processes that scan and those that ask, and on disk.
std::string encode(const Registrations& registrations);

// nullopt where the bytes are none of encode()'s. The addresses may still be anything.
std::optional<Registrations> decode_registrations(std::span<const char> bytes);

// The same, in a file of no folder; empty where there is none to be had.
Fd in_file(const Registrations& registrations);
std::optional<Registrations> registrations_in(const Fd& file);

// Of what encode() makes at most.
inline constexpr size_t registrations_max = 1 << 18; // cuBLASLt 13.0 has 32,000
inline constexpr size_t encoded_max = 2 * registrations_max * (3 * sizeof(uint64_t) + sizeof(uint32_t)) + 64;

} // namespace gpusnoop
