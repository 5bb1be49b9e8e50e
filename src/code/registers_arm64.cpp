// SPDX-License-Identifier: Apache-2.0
#include "code/registers_arm64.hpp"

#include "code/words_arm64.hpp"

namespace gpusnoop::arm64 {
namespace {

Argument constant(uint64_t value)
{
    return {Argument::constant, value};
}

} // namespace

void Registers::follow(uint32_t word, uint64_t at)
{
    if (adrp.matches(word) || adr.matches(word)) {
        know(rd(word), address_of(word, at));
    } else if (add_immediate.matches(word) || sub_immediate.matches(word)) {
        const Argument& base = values_[rn(word)];
        const uint64_t number = add_immediate.matches(word) ? added(word) : -added(word);
        set(rd(word), base.kind == Argument::constant ? constant(base.value + number) : Argument());
    } else if (move.matches(word)) {
        set(rd(word), rm(word) == x31 ? constant(0) : values_[rm(word)]);
    } else if (move_low.matches(word)) {
        const Argument from = rm(word) == x31 ? constant(0) : values_[rm(word)];
        set(rd(word), from.kind == Argument::constant ? constant(static_cast<uint32_t>(from.value)) : Argument());
    } else if (movz.matches(word) || movn.matches(word) || movk.matches(word)) {
        move_immediate(word);
    } else if (load.matches(word)) {
        const Argument& base = values_[rn(word)];
        set(rd(word),
            base.kind == Argument::constant ? Argument{Argument::loaded, base.value + loaded_from(word)} : Argument());
    } else if (memory.matches(word)) {
        access_memory(word);
    } else if (bl.matches(word) || blr.matches(word)) {
        for (size_t number = 0; number <= lost_in_calls; number++)
            forget(number);
        forget(link);
    } else if (goes_elsewhere(word)) {
        *this = {};
    } else if (!is_conditional(word)) {
        forget(rd(word));
    }
}

void Registers::set(size_t number, Argument value)
{
    if (number != x31)
        values_[number] = value;
}

void Registers::meet(const Registers& other)
{
    for (size_t number = 0; number < values_.size(); number++)
        if (values_[number] != other.values_[number])
            forget(number);
}

void Registers::move_immediate(uint32_t word)
{
    const unsigned shift = (word >> 21 & 3) * 16;
    const uint64_t immediate = uint64_t{word >> 5 & 0xffff} << shift;
    const Argument before = values_[rd(word)];
    uint64_t value = movn.matches(word) ? ~immediate : immediate;
    if (movk.matches(word)) {
        if (before.kind != Argument::constant)
            return forget(rd(word));
        value = (before.value & ~(uint64_t{0xffff} << shift)) | immediate;
    }
    know(rd(word), word >> 31 ? value : static_cast<uint32_t>(value));
}

// Loads and stores but those of one known pointer. A vector's number is no general register's.
void Registers::access_memory(uint32_t word)
{
    const bool vector = word & 1 << 26;
    const bool stores = store_pair.matches(word) || store.matches(word) || store_near.matches(word);
    if (!stores && !vector) {
        forget(rd(word));
        if (load_pair.matches(word))
            forget(word >> 10 & 31);
    }
    // Before or behind the access the base may move.
    const uint32_t group = word >> 27 & 7;
    const bool moves_base = (group == 5 && word >> 23 & 1) || (group == 7 && (word >> 24 & 3) == 0 && word >> 10 & 1);
    if (moves_base)
        forget(rn(word));
    // Exclusive stores write whether they have stored.
    if ((word & 0x3f000000) == 0x08000000)
        forget(rm(word));
}

} // namespace gpusnoop::arm64
