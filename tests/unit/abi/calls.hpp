// SPDX-License-Identifier: Apache-2.0
// Calls of every function of the probe table, compiled as a program's calls would be, with their arguments captured at
// the entry of the called function. calls.cpp makes one set of them per compiler, and per source of the prototypes.
#pragma once

#include "bpf/probe.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace abi {

struct Captured {
    uint64_t registers[6]; // rdi, rsi, rdx, rcx, r8, r9
    uint64_t rsp;
    uint64_t stack[16]; // from rsp: the return address, s0, s1, ...
};
static_assert(offsetof(Captured, rsp) == 48 && offsetof(Captured, stack) == 56); // capture.S

// No two halves of these values are equal, so that a wrong place cannot go unnoticed.
constexpr uint64_t distinct(size_t number)
{
    return (0xC0DE0000 + number) << 32 | (0xBEEF0000 + number);
}

enum class Passed : uint8_t { word32, word64, dimensions, launches };

constexpr size_t elements = 2; // structures behind one pointer: a list is read by its stride

struct Call {
    Captured captured{};
    std::vector<Passed> parameters;
    // Parameter i is distinct(i), or as much of it as fits; y of a dim3 is its upper half, and z distinct(z_of(i)).
    static constexpr size_t z_of(size_t parameter) { return 100 + parameter; }

    // Where a parameter points to structures, they are in memory, and fields says what was stored in them.
    struct Field {
        argument which;
        uint64_t value;
    };
    std::vector<Field> fields[elements];
    alignas(16) std::byte memory[256];
};

struct Signature {
    std::string_view symbol;
    std::string_view parameters; // as in signatures.def
    void (*make)(Call&);         // null where the headers do not declare the symbol
};

struct CallSet {
    std::string_view compiler;
    int cuda; // CUDA_VERSION of the headers that the prototypes are from; 0: signatures.def
    std::span<const Signature> signatures;
};

std::vector<CallSet>& call_sets();

} // namespace abi

extern "C" {
extern abi::Captured abi_captured;
void abi_capture(); // of any type: a cast from this one does not warn
}
