// SPDX-License-Identifier: Apache-2.0
// Calls of every function of the probe table, compiled as a program's calls would be, with their arguments captured at
// the entry of the called function. calls.cpp makes one set of them per compiler, and per source of the prototypes.
#pragma once

#include "attach/probes.hpp"
#include "bpf/shared/probe.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace abi {

// Where the stack has its first argument, s0, in words from the stack pointer: on x86-64 behind the return address.
// On arm64 the caller's frame, behind the arguments, has the structures that are passed by their address.
#if defined(__aarch64__)
constexpr size_t first_slot = 0, stack_words = 64;
#else
constexpr size_t first_slot = 1, stack_words = 16;
#endif

struct Captured {
    uint64_t registers[ARGUMENT_REGISTERS]; // rdi, rsi, rdx, rcx, r8, r9; or x0 to x7
    uint64_t sp;
    uint64_t stack[stack_words]; // from sp
};
static_assert(offsetof(Captured, sp) == 8 * ARGUMENT_REGISTERS &&
              offsetof(Captured, stack) == 8 * ARGUMENT_REGISTERS + 8); // capture.S

// No two halves of these values are equal, so that a wrong place cannot go unnoticed.
constexpr uint64_t distinct(size_t number)
{
    return (0xC0DE0000 + number) << 32 | (0xBEEF0000 + number);
}

// The call stores through it.
constexpr bool is_result(int which)
{
    return which == ARG_OUT || which == ARG_PITCH;
}

enum class Passed : uint8_t { scalar, structure, fields, pointer };

struct Parameter {
    Passed passed; // fields: a structure whose fields mean something; pointer: to such structures
    size_t bytes;
    bool operator==(const Parameter&) const = default;
};

constexpr size_t elements = 2; // structures behind one pointer: a list is read by its stride

struct Call {
    Captured captured{};
    std::vector<Parameter> parameters;
    // Parameter i consists of these words, or of as much of the first one as fits.
    static constexpr uint64_t word(size_t parameter, size_t number) { return distinct(parameter + 100 * number); }

    // What the fields of structures contain, which are passed by value, or lie in memory; is_result(): offset in
    // memory.
    struct Field {
        argument which;
        uint64_t value;
        size_t parameter;
        bool operator==(const Field&) const = default;
    };
    std::vector<Field> fields[elements];
    alignas(16) std::byte memory[512];
};

struct Signature {
    std::string_view symbol;
    uint8_t runtimes;            // as in Probe
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
