// SPDX-License-Identifier: Apache-2.0
// Decoder for arm64 (A64). Arguments are in x0 to x7.
#include "code/paths_arm64.hpp"
#include "code/words_arm64.hpp"

#include <algorithm>
#include <cstring>

namespace gpusnoop::arm64 {

namespace {

bool ends_straight_code(uint32_t word)
{
    return goes_elsewhere(word) || is_conditional(word);
}

} // namespace

// A branch through a pointer has this form: adrp xA; ldr xB, [xA, #O]; br or blr xB. In PLT stubs, the branch may come
// after an add, whose result the dynamic linker's resolver uses.
void Arm64::branches(const Code& code, const std::function<void(const Branch&)>& found) const
{
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const uint64_t at = words.address(i);
        if (bl.matches(words[i]))
            found({Branch::call, at, at + word_bytes, call_target(words[i], at)});
        if (!adrp.matches(words[i]) || i + 2 >= words.size() || !load.matches(words[i + 1]) ||
            rn(words[i + 1]) != rd(words[i]))
            continue;
        const size_t pointer = rd(words[i + 1]);
        size_t jump = i + 2;
        if (add_immediate.matches(words[jump]) && rd(words[jump]) != pointer && jump + 1 < words.size())
            jump++;
        const bool jumps = br.matches(words[jump]);
        if ((!jumps && !blr.matches(words[jump])) || rn(words[jump]) != pointer)
            continue;
        found({jumps ? Branch::jump_through : Branch::call_through, jumps ? at : words.address(jump),
               words.address(jump + 1), address_of(words[i], at) + loaded_from(words[i + 1])});
    }
}

void Arm64::minus_ones(const Code& code, const std::function<void(uint64_t)>& found) const
{
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++)
        if ((words[i] & 0x7fffffff) == 0x12800004) // mov w4 or x4, #-1
            found(words.address(i));
}

void Arm64::addresses(const Code& code, const std::function<void(uint64_t, uint64_t)>& found) const
{
    constexpr size_t max_distance = 8; // number of instructions to search for the add, including the adrp
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        if (!adrp.matches(words[i]))
            continue;
        for (size_t j = i + 1; j < std::min(i + max_distance, words.size()); j++)
            if (add_immediate.matches(words[j]) && rn(words[j]) == rd(words[i])) {
                found(words.address(i), address_of(words[i], words.address(i)) + added(words[j]));
                break;
            }
    }
}

std::array<uint64_t, 3> Arm64::stub_entries(uint64_t jump, std::span<const uint8_t> before) const
{
    uint32_t previous = 0;
    if (before.size() >= word_bytes)
        std::memcpy(&previous, before.last(word_bytes).data(), word_bytes);
    return {jump, jump, bti.matches(previous) ? jump - word_bytes : jump};
}

std::optional<Decoder::Arguments> Arm64::arguments(const Code& code) const
{
    const Words words(code);
    if (code.address % word_bytes || code.bytes.size() % word_bytes)
        return std::nullopt;
    Registers state;
    for (size_t i = 0; i < words.size(); i++)
        state.follow(words[i], words.address(i));
    Arguments known;
    for (size_t i = 0; i < arguments_known; i++)
        known[i] = state[i];
    return known;
}

std::optional<Branch> Arm64::first_call(const Code& code) const
{
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const uint64_t at = words.address(i);
        if (bl.matches(words[i]))
            return Branch{Branch::call, at, at + word_bytes, call_target(words[i], at)};
        if (blr.matches(words[i]) || ends_straight_code(words[i]))
            return std::nullopt;
    }
    return std::nullopt;
}

// NVIDIA's thunks consist of adrp, mov, movk, ldr, cmp, b.eq, adrp, ldr, mov and br, in varying order.
std::optional<Branch> Arm64::thunk_jump(const Code& code) const
{
    const Words words(code);
    Registers state;
    for (size_t i = 0; i < words.size(); i++) {
        const uint32_t word = words[i];
        const uint64_t at = words.address(i);
        if (br.matches(word)) {
            const Argument& to = state[rn(word)];
            if (to.kind != Argument::loaded)
                return std::nullopt;
            return Branch{Branch::jump_through, at, at + word_bytes, to.value};
        }
        if (blr.matches(word) || bl.matches(word) || (ends_straight_code(word) && !branch_on_condition.matches(word)) ||
            (memory.matches(word) && (store_pair.matches(word) || store.matches(word) || store_near.matches(word))))
            return std::nullopt;
        if (!compare.matches(word) && !branch_on_condition.matches(word) && !bti.matches(word))
            state.follow(word, at);
    }
    return std::nullopt;
}

} // namespace gpusnoop::arm64

namespace gpusnoop {

const Decoder& arm64_decoder()
{
    static const arm64::Arm64 decoder;
    return decoder;
}

} // namespace gpusnoop
