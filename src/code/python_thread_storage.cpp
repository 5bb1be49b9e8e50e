// SPDX-License-Identifier: Apache-2.0
#include "code/python_thread_storage.hpp"

#include "code/registers_arm64.hpp"
#include "code/words_arm64.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace gpusnoop {
namespace {

// mov %fs:OFFSET,%rax
std::optional<int32_t> variable_x86_64(const Code& code)
{
    constexpr std::array<uint8_t, 5> load = {0x64, 0x48, 0x8b, 0x04, 0x25};
    const auto found = std::ranges::search(code.bytes, load);
    int32_t offset = 0;
    if (code.bytes.end() - found.end() < static_cast<ptrdiff_t>(sizeof(offset)) || found.empty())
        return std::nullopt;
    memcpy(&offset, std::to_address(found.end()), sizeof(offset));
    return offset;
}

// What any four bytes of it lead to: from the object, from where they are, or as an address, which a program that is
// not moved has below 4 GiB.
void places_x86_64(const Code& code, uint64_t object, const std::function<void(uint64_t)>& found)
{
    for (size_t at = 0; at + sizeof(int32_t) <= code.bytes.size(); at++) {
        int32_t offset = 0;
        memcpy(&offset, &code.bytes[at], sizeof(offset));
        const auto distance = static_cast<uint64_t>(int64_t{offset});
        found(object + distance);
        found(static_cast<uint32_t>(offset));
        found(code.address + at + sizeof(offset) + distance);
    }
}

// mrs x0, tpidr_el0; sub x0, x0, #SIZE; ret. What glibc keeps of a thread lies in front of its thread pointer, and how
// much that is differs from version to version.
std::optional<uint64_t> thread_pointer_arm64(const Code& code)
{
    using namespace arm64;
    std::array<std::optional<uint64_t>, 32> below{}; // how far the register is below the thread pointer
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const uint32_t word = words[i];
        if (ret.matches(word))
            return below[0];
        if (bti.matches(word) || nop.matches(word))
            continue;
        if (read_thread_pointer.matches(word))
            below[rd(word)] = 0;
        else if (sub_immediate.matches(word) && rn(word) != x31 && below[rn(word)])
            below[rd(word)] = *below[rn(word)] + added(word);
        else
            return std::nullopt;
    }
    return std::nullopt;
}

// mrs x0, tpidr_el0; add x0, x0, #HIGH, lsl #12; add x0, x0, #LOW; ldr x0, [x0]
std::optional<int32_t> variable_arm64(const Code& code)
{
    using namespace arm64;
    std::array<std::optional<uint64_t>, 32> behind{}, loaded{};
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const uint32_t word = words[i];
        if (ret.matches(word))
            return loaded[0] ? std::optional(static_cast<int32_t>(*loaded[0])) : std::nullopt;
        if (is_conditional(word) || goes_elsewhere(word) || bl.matches(word) || blr.matches(word))
            return std::nullopt;
        const auto access = access_of(word);
        if (access && !access->loads)
            continue;
        std::optional<uint64_t> place, value;
        if (read_thread_pointer.matches(word))
            place = 0;
        else if (add_immediate.matches(word) && rn(word) != x31 && behind[rn(word)])
            place = *behind[rn(word)] + added(word);
        else if (load.matches(word) && rn(word) != x31 && behind[rn(word)])
            value = *behind[rn(word)] + loaded_from(word);
        behind[rd(word)] = place;
        loaded[rd(word)] = value && *value <= INT32_MAX ? value : std::nullopt;
        if (access && access->count == 2)
            behind[access->numbers[1]] = loaded[access->numbers[1]] = std::nullopt;
    }
    return std::nullopt;
}

// A pointer out of a library's table is taken for the object's.
void places_arm64(const Code& code, uint64_t object, const std::function<void(uint64_t)>& found)
{
    using namespace arm64;
    Registers state;
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const auto access = access_of(words[i]);
        if (access && access->loads && state[access->base].kind == Argument::constant)
            found(state[access->base].value + static_cast<uint64_t>(access->offset));
        state.follow(words[i], words.address(i));
        const size_t number = rd(words[i]);
        if (state[number].kind == Argument::loaded)
            state.set(number, {Argument::constant, object});
        else if (state[number].kind == Argument::constant)
            found(state[number].value);
    }
}

} // namespace

const ThreadStorage storage_on_x86_64{0x310, nullptr, variable_x86_64, places_x86_64};
const ThreadStorage storage_on_arm64{0x110, thread_pointer_arm64, variable_arm64, places_arm64};

} // namespace gpusnoop
