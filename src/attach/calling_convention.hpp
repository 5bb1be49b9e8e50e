// SPDX-License-Identifier: Apache-2.0
// Where a function has its arguments on each machine, by the rules of its ABI.
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

// Where an argument is, or its first word.
struct ArgumentPlace {
    enum Kind : uint8_t {
        in_register,
        on_stack, // in an 8-byte slot, the first one is 0
        pointed,  // behind the pointer that the register holds
    } kind = in_register;
    uint8_t number = 0; // of the register, or of the slot

    bool operator==(const ArgumentPlace&) const = default;
};

// Asked for the arguments of a call, one after the other: integers, pointers and structures of integers.
class CallingConvention {
public:
    consteval explicit CallingConvention(Machine machine) : machine_(machine) {}

    // An integer or a pointer.
    consteval ArgumentPlace word()
    {
        return registers_ < registers_of_arguments() ? ArgumentPlace{ArgumentPlace::in_register, registers_++}
                                                     : ArgumentPlace{ArgumentPlace::on_stack, slots_++};
    }

    // A structure of so many words, passed by value. Up to two lie like arguments of their own, but never in part in
    // a register (x86-64 psABI, 3.2.3; AAPCS64, 6.8.2, by which no register is used any more behind such a one). A
    // larger one lies among the slots of x86-64, and on arm64 behind a pointer that takes an argument's place.
    consteval ArgumentPlace structure(size_t words)
    {
        const bool arm64 = machine_ == Machine::arm64;
        if (words > 2 && arm64) {
            const ArgumentPlace pointer = word();
            if (pointer.kind != ArgumentPlace::in_register)
                throw std::logic_error("a structure behind a pointer on the stack");
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
    uint8_t registers_ = 0, slots_ = 0; // those that are taken
};

} // namespace gpusnoop
