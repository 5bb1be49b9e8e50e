// SPDX-License-Identifier: Apache-2.0
#include "code/paths_arm64.hpp"

#include "code/dispatch_tables.hpp"
#include "code/words_arm64.hpp"

#include <utility>

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

void Registers::merge(const Registers& other)
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

// Interprets all loads and stores except 64-bit loads with an unsigned offset. Vector loads write no general register.
void Registers::access_memory(uint32_t word)
{
    const bool vector = word & 1 << 26;
    const bool stores = store_pair.matches(word) || store.matches(word) || store_near.matches(word);
    if (!stores && !vector) {
        forget(rd(word));
        if (load_pair.matches(word))
            forget(word >> 10 & 31);
    }
    // Pre- and post-indexed accesses change the base register.
    const uint32_t group = word >> 27 & 7;
    const bool moves_base = (group == 5 && word >> 23 & 1) || (group == 7 && (word >> 24 & 3) == 0 && word >> 10 & 1);
    if (moves_base)
        forget(rn(word));
    // Exclusive stores write a status to register rm.
    if ((word & 0x3f000000) == 0x08000000)
        forget(rm(word));
}

namespace {

// Interprets a function and its callees, to find the path to its return value.
class PathSearch {
public:
    PathSearch(const CodeAt& code_at, std::optional<PartialPath> argument, int depth) : code_at_(code_at), depth_(depth)
    {
        held_[0] = std::move(argument);
    }

    // Returns the path to the return value. nullopt if there is none, or if the code does anything but follow a path.
    std::optional<PartialPath> run(const Code& code)
    {
        const Words words(code);
        for (size_t i = 0; i < words.size() && i < PartialPath::max_steps; i++) {
            const uint32_t word = words[i];
            if (ret.matches(word) || ret_signed.matches(word))
                return held_[0];
            if (b.matches(word))
                return called(call_target(word, words.address(i)));
            if (br.matches(word) || blr.matches(word))
                return std::nullopt;
            if (bl.matches(word)) {
                std::optional<PartialPath> result = called(call_target(word, words.address(i)));
                for (size_t number = 0; number <= lost_in_calls; number++)
                    held_[number].reset();
                held_[0] = std::move(result);
            } else if (!is_conditional(word)) { // a conditional branch is assumed to be a null check that is not taken
                follow(word);
            }
        }
        return std::nullopt;
    }

private:
    std::optional<PartialPath> called(uint64_t address)
    {
        if (!held_[0] || depth_ >= PartialPath::max_call_depth)
            return std::nullopt;
        const std::vector<uint8_t> bytes = code_at_(address);
        return PathSearch(code_at_, held_[0], depth_ + 1).run({bytes, address});
    }

    void follow(uint32_t word)
    {
        if (const auto access = access_of(word)) {
            access_memory(*access);
            return;
        }
        std::optional<PartialPath> value;
        if (add_immediate.matches(word) && rn(word) != x31)
            value = plus(held_[rn(word)], static_cast<int64_t>(added(word)));
        else if (move.matches(word) && rm(word) != x31)
            value = held_[rm(word)];
        held_[rd(word)] = std::move(value);
    }

    void access_memory(const Access& access)
    {
        std::optional<PartialPath> place;
        if (access.loads && access.count == 1 && access.bytes == 8 && access.base != x31 && !access.before &&
            !access.after)
            place = loaded_from(plus(held_[access.base], access.offset));
        if (access.loads)
            for (size_t i = 0; i < access.count; i++)
                held_[access.numbers[i]] = place;
        if (access.before || access.after)
            held_[access.base].reset();
    }

    const CodeAt& code_at_;
    int depth_;
    std::array<std::optional<PartialPath>, 32> held_;
};

} // namespace

std::optional<Path> Arm64::path(const Code& code, const CodeAt& code_at) const
{
    return path_by(PathSearch(code_at, PartialPath{}, 0).run(code));
}

} // namespace gpusnoop::arm64
