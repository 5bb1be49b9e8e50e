// SPDX-License-Identifier: Apache-2.0
// Decoder for arm64, and abstract interpretation of its general registers.
#pragma once

#include "code/decoder.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpusnoop::arm64 {

// Known values of the general registers. Nothing is known about x31, which is zero or the stack pointer.
class Registers {
public:
    const Argument& operator[](size_t number) const { return values_[number]; }
    void follow(uint32_t word, uint64_t at);
    void set(size_t number, Argument value);
    // Keeps only the values that are equal in both. Needed for code that can be reached from two places.
    void merge(const Registers& other);

    bool operator==(const Registers&) const = default;

private:
    void know(size_t number, uint64_t value) { set(number, {Argument::constant, value}); }
    void forget(size_t number) { values_[number] = {}; }
    void move_immediate(uint32_t word);
    void access_memory(uint32_t word);

    std::array<Argument, 32> values_{};
};

class Arm64 : public Decoder {
public:
    void branches(const Code& code, const std::function<void(const Branch&)>& found) const override;
    void minus_ones(const Code& code, const std::function<void(uint64_t)>& found) const override;
    void addresses(const Code& code, const std::function<void(uint64_t, uint64_t)>& found) const override;
    std::array<uint64_t, 3> stub_entries(uint64_t jump, std::span<const uint8_t> before) const override;
    std::optional<Arguments> arguments(const Code& code) const override;
    std::optional<Branch> first_call(const Code& code) const override;
    std::optional<Branch> thunk_jump(const Code& code) const override;
    std::optional<Dispatch> dispatch(const Code& code) const override;
    std::vector<Filled> filled(const Code& code) const override;
    std::optional<uint32_t> returned_field(const Code& code) const override;
    std::optional<uint32_t> returned_constant(const Code& code) const override;
    std::optional<Path> path(const Code& code, const CodeAt& code_at) const override;
    // Always 0, because on arm64 probes are placed only at the first instruction (attach/placement_arm64.cpp).
    size_t skippable_length(std::span<const uint8_t>) const override { return 0; }
};

} // namespace gpusnoop::arm64
