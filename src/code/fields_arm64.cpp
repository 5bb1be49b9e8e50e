// SPDX-License-Identifier: Apache-2.0
#include "code/fields_arm64.hpp"

#include "code/registers_arm64.hpp"
#include "code/words_arm64.hpp"

#include <array>

namespace gpusnoop::arm64 {
namespace {

// A number of 32 bits behind a register that points to something of a caller's: neither the stack nor a variable.
bool is_of_caller(const std::optional<Access>& access, const Registers& state)
{
    constexpr size_t frame = 29;
    return access && access->bytes == 4 && access->count == 1 && access->before == 0 && access->after == 0 &&
           access->base != x31 && access->base != frame && state[access->base].kind == Argument::unknown;
}

// x31: none.
size_t written_by(uint32_t word)
{
    const bool stores =
        memory.matches(word) && (store_pair.matches(word) || store.matches(word) || store_near.matches(word));
    return stores || is_conditional(word) || goes_elsewhere(word) || bl.matches(word) || blr.matches(word) ? x31
                                                                                                           : rd(word);
}

// A field that is too far from its structure's begin for a load takes a register that holds a place in between.
class Farther {
public:
    // Code: all of it, as a register may be set so anywhere in it.
    explicit Farther(const Words& words)
    {
        for (size_t i = 0; i < words.size(); i++)
            if (is_far(words[i]))
                somewhere_[rd(words[i])] = true;
    }

    void follow(uint32_t word)
    {
        if (goes_elsewhere(word)) {
            by_ = {};
            return;
        }
        const size_t written = written_by(word);
        if (written == x31)
            return;
        if (add_immediate.matches(word) && rn(word) != x31)
            by_[written] = by_[rn(word)].value_or(0) + added(word);
        else if (move.matches(word))
            by_[written] = by_[rm(word)];
        else
            by_[written].reset();
    }

    // nullopt where it may be any.
    std::optional<uint64_t> by(size_t number) const
    {
        return by_[number] || !somewhere_[number] ? by_[number].value_or(0) : std::optional<uint64_t>();
    }

private:
    static bool is_far(uint32_t word) { return add_immediate.matches(word) && word & 1 << 22; }

    std::array<bool, 32> somewhere_{};
    std::array<std::optional<uint64_t>, 32> by_{};
};

} // namespace

std::optional<uint32_t> field_of(const Code& code)
{
    constexpr size_t soon = 3; // words from the load to the store
    const Words words(code);
    Farther farther(words);
    Registers state;
    std::optional<uint32_t> found, field;
    size_t loaded = x31, since = 0;
    for (size_t i = 0; i < words.size(); i++) {
        const uint32_t word = words[i];
        const auto access = access_of(word);
        const bool of_caller = is_of_caller(access, state);
        if (++since > soon)
            loaded = x31;
        if (of_caller && !access->loads && access->offset == 0 && loaded != x31 && access->numbers[0] == loaded) {
            if (!field || (found && *found != *field))
                return std::nullopt;
            found = field;
        }
        if (written_by(word) == loaded)
            loaded = x31;
        if (of_caller && access->loads) {
            const auto base = farther.by(access->base);
            const uint64_t place = base.value_or(0) + static_cast<uint64_t>(access->offset);
            field = base && place <= INT32_MAX ? std::optional(static_cast<uint32_t>(place)) : std::nullopt;
            loaded = place ? access->numbers[0] : x31;
            since = 0;
        }
        farther.follow(word);
        state.follow(word, words.address(i));
    }
    return found;
}

std::optional<uint32_t> constant_of(const Code& code)
{
    const Words words(code);
    Registers state;
    std::optional<uint32_t> found;
    for (size_t i = 0; i < words.size(); i++) {
        const auto access = access_of(words[i]);
        if (is_of_caller(access, state) && !access->loads && access->offset == 0) {
            const size_t from = access->numbers[0];
            const Argument stored = from == x31 ? Argument{Argument::constant, 0} : state[from];
            if (stored.kind == Argument::constant) {
                if (found && *found != stored.value)
                    return std::nullopt;
                found = static_cast<uint32_t>(stored.value);
            }
        }
        state.follow(words[i], words.address(i));
    }
    return found;
}

} // namespace gpusnoop::arm64
