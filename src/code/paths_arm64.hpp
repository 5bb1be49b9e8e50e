// SPDX-License-Identifier: Apache-2.0
// Functions of arm64 that return what a structure of their caller's leads to, as those of dispatch_x86_64.cpp.
#pragma once

#include "code/decoder.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpusnoop::arm64 {

// What arm64's general registers hold behind each instruction, as far as that is known without running the code.

// Of x31, which is zero or the stack pointer, nothing is known.
class Registers {
public:
    const Argument& operator[](size_t number) const { return values_[number]; }
    void follow(uint32_t word, uint64_t at);
    void set(size_t number, Argument value);
    // Of two ways that lead here, what both know.
    void meet(const Registers& other);

    bool operator==(const Registers&) const = default;

private:
    void know(size_t number, uint64_t value) { set(number, {Argument::constant, value}); }
    void forget(size_t number) { values_[number] = {}; }
    void move_immediate(uint32_t word);
    void access_memory(uint32_t word);

    std::array<Argument, 32> values_{};
};

// As in Decoder.
std::optional<Path> path_of(const Code& code, const CodeAt& code_at);

} // namespace gpusnoop::arm64
