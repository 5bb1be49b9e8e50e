// SPDX-License-Identifier: Apache-2.0
// Where a function has its arguments on each machine, by the rules of its ABI.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace gpusnoop {

enum class Machine : uint8_t { x86_64, arm64 };

#if defined(__aarch64__)
constexpr Machine host = Machine::arm64;
#else
constexpr Machine host = Machine::x86_64;
#endif

// An argument, or a word of one.
struct ArgumentPlace {
    enum Kind : uint8_t {
        in_register,
        on_stack, // in an 8-byte slot, the first one is 0
        pointed,  // behind the pointer that the register holds
    } kind = in_register;
    uint8_t number = 0; // of the register, or of the slot
    uint8_t word = 0;   // behind the pointer

    bool operator==(const ArgumentPlace&) const = default;
};

// Integers, pointers and small structures, a word after the other. What is larger than two words is told by its size.
class CallingConvention {
public:
    static constexpr size_t words_max = 32;

    // The argument that begins with this word is a structure of so many words, passed by value.
    consteval void by_value(size_t word, size_t words) { sizes_.at(word) = static_cast<uint8_t>(words); }

    // Where arm64 has what x86-64 has there. x86-64 (psABI, 3.2.3) has six registers, and structures among the slots;
    // arm64 (AAPCS64, 6.8.2) has eight, and structures behind a pointer that takes an argument's place.
    consteval ArgumentPlace on_arm64(ArgumentPlace x86) const
    {
        uint8_t registers_x86 = 0, slots_x86 = 0, registers = 0, slots = 0;
        for (const uint8_t words : sizes_) {
            const bool by_register = registers < 8;
            const ArgumentPlace here = by_register ? ArgumentPlace{ArgumentPlace::in_register, registers}
                                                   : ArgumentPlace{ArgumentPlace::on_stack, slots};
            (by_register ? registers : slots)++;
            if (words) {
                if (x86.kind == ArgumentPlace::on_stack && x86.number >= slots_x86 && x86.number < slots_x86 + words) {
                    if (!by_register)
                        throw std::logic_error("a structure behind a pointer on the stack");
                    return {ArgumentPlace::pointed, here.number, static_cast<uint8_t>(x86.number - slots_x86)};
                }
                slots_x86 = static_cast<uint8_t>(slots_x86 + words);
                continue;
            }
            const ArgumentPlace there = registers_x86 < 6 ? ArgumentPlace{ArgumentPlace::in_register, registers_x86++}
                                                          : ArgumentPlace{ArgumentPlace::on_stack, slots_x86++};
            if (there == x86)
                return here;
        }
        throw std::logic_error("no such argument");
    }

private:
    std::array<uint8_t, words_max> sizes_{}; // 0: one word
};

} // namespace gpusnoop
