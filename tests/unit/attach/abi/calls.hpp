// SPDX-License-Identifier: Apache-2.0
// Compiled calls of every function of the probe table, with the registers and stack captured at the entry of the called
// function. calls.cpp is compiled to one set of calls per compiler and per source of the prototypes.
#pragma once

#include "attach/probes.hpp"
#include "bpf/shared/probe.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace abi {

// first_slot: offset of the first stack argument (s0) from the stack pointer, in words. On x86-64 the return address
// precedes that argument. On arm64 more words are captured, because structures that are passed by address are in the
// caller's frame.
#if defined(__aarch64__)
constexpr size_t first_slot = 0, stack_words = 64;
#else
constexpr size_t first_slot = 1, stack_words = 16;
#endif

struct Captured {
    uint64_t registers[ARGUMENT_REGISTERS]; // rdi, rsi, rdx, rcx, r8, r9; or x0 to x7
    uint64_t sp;
    uint64_t stack[stack_words]; // words from sp on
};
static_assert(offsetof(Captured, sp) == 8 * ARGUMENT_REGISTERS &&
              offsetof(Captured, stack) == 8 * ARGUMENT_REGISTERS + 8); // capture.S

// Returns a value for argument `number`. All halves of all values differ, so that reading the wrong place is always
// detected.
constexpr uint64_t distinct(size_t number)
{
    return (0xC0DE0000 + number) << 32 | (0xBEEF0000 + number);
}

// True for arguments that point to a result.
constexpr bool is_result(int which)
{
    return which == ARG_OUT || which == ARG_PITCH;
}

enum class Passed : uint8_t { scalar, structure, fields, pointer };

struct Parameter {
    Passed passed; // fields: a structure of which tools read fields; pointer: a pointer to such structures
    size_t bytes;
    bool operator==(const Parameter&) const = default;
};

constexpr size_t elements = 2; // length of arrays of structures; more than 1, to test the stride

struct Call {
    Captured captured{};
    std::vector<Parameter> parameters;
    // Word `number` of a parameter's value. A parameter narrower than a word has the low bits of word 0.
    static constexpr uint64_t word(size_t parameter, size_t number) { return distinct(parameter + 100 * number); }

    // A field that the probe table reads, of a structure that is passed by value or by a pointer to `memory`. `value`
    // is the field's value or, for a result (is_result()), the field's offset in `memory`.
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
    void (*make)(Call&);         // null if the headers do not declare the symbol
};

struct CallSet {
    std::string_view compiler;
    int cuda; // CUDA_VERSION of the headers with the prototypes; 0: prototypes of signatures.def
    std::span<const Signature> signatures;
};

std::vector<CallSet>& call_sets();

// Finds the signature of the row's function under the name `symbol`. Returns null if the set has no such call.
const Signature* find(const CallSet& set, const gpusnoop::Probe& probe, std::string_view symbol);
// Like find(), under the function's own name without the suffix of a variant, such as _ptsz.
const Signature* find(const CallSet& set, const gpusnoop::Probe& probe);
// Returns true if the row applies to calls with this signature.
bool matches(const gpusnoop::Probe& probe, const Signature& signature);

std::string_view argument_name(int which); // name of an `enum argument` in signatures.def
// The values that the caller passed, by `enum argument`. element: of an array of structures.
std::map<int, uint64_t> passed_arguments(const Signature& signature, const Call& call, size_t element);

} // namespace abi

extern "C" {
extern abi::Captured abi_captured;
void abi_capture(); // cast to each function's type; compilers do not warn about casts from void()
}
