// SPDX-License-Identifier: Apache-2.0
// Calling conventions of x86-64 and arm64: the register or stack slot of each argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace gpusnoop {

enum class Machine : uint8_t { x86_64, arm64 };

#if defined(__aarch64__)
constexpr Machine host = Machine::arm64;
#else
constexpr Machine host = Machine::x86_64;
#endif

// Location of an argument. For an argument of several words, location of the first word.
struct ArgumentPlace {
    enum Kind : uint8_t {
        in_register,
        on_stack, // in an 8-byte slot; slots are numbered from 0
        pointed,  // in memory, at the address in a register
    } kind = in_register;
    uint8_t number = 0; // number of the register (in_register, pointed) or of the slot (on_stack)

    bool operator==(const ArgumentPlace&) const = default;
};

// Assigns locations to the arguments of a call, in their order. Supports integers, pointers and structures of integers.
class CallingConvention {
public:
    consteval explicit CallingConvention(Machine machine) : machine_(machine) {}

    // Returns the location of the next argument, an integer or a pointer.
    consteval ArgumentPlace word()
    {
        return registers_ < registers_of_arguments() ? ArgumentPlace{ArgumentPlace::in_register, registers_++}
                                                     : ArgumentPlace{ArgumentPlace::on_stack, slots_++};
    }

    // Returns the location of the next argument, a structure of this many words by value. A structure of one or two
    // words is passed like separate arguments, but either entirely in registers or entirely on the stack (x86-64 psABI,
    // 3.2.3; AAPCS64, 6.8.2). A larger structure is passed on the stack on x86-64, and by pointer on arm64. On arm64,
    // all arguments after a structure on the stack are on the stack, too.
    consteval ArgumentPlace structure(size_t words)
    {
        const bool arm64 = machine_ == Machine::arm64;
        if (words > 2 && arm64) {
            const ArgumentPlace pointer = word();
            if (pointer.kind != ArgumentPlace::in_register)
                throw std::logic_error("a pointer to a structure must be in a register");
            return {ArgumentPlace::pointed, pointer.number};
        }
        const auto count = static_cast<uint8_t>(words);
        if (words <= 2 && registers_ + words <= registers_of_arguments())
            return {ArgumentPlace::in_register, std::exchange(registers_, static_cast<uint8_t>(registers_ + count))};
        if (arm64)
            registers_ = registers_of_arguments();
        return {ArgumentPlace::on_stack, std::exchange(slots_, static_cast<uint8_t>(slots_ + count))};
    }

private:
    consteval uint8_t registers_of_arguments() const { return machine_ == Machine::arm64 ? 8 : 6; }

    Machine machine_;
    uint8_t registers_ = 0, slots_ = 0; // number of argument registers and of stack slots assigned so far
};

} // namespace gpusnoop
