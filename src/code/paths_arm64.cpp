// SPDX-License-Identifier: Apache-2.0
#include "code/paths_arm64.hpp"

#include "code/ways.hpp"
#include "code/words_arm64.hpp"

#include <utility>

namespace gpusnoop::arm64 {
namespace {

class Walk {
public:
    Walk(const CodeAt& code_at, std::optional<Way> argument, int depth) : code_at_(code_at), depth_(depth)
    {
        held_[0] = std::move(argument);
    }

    // What the function returns; nullopt where that is not on the way, or its code does more than to find it.
    std::optional<Way> through(const Code& code)
    {
        const Words words(code);
        for (size_t i = 0; i < words.size() && i < Way::steps_max; i++) {
            const uint32_t word = words[i];
            if (ret.matches(word) || ret_signed.matches(word))
                return held_[0];
            if (b.matches(word))
                return called(call_target(word, words.address(i)));
            if (br.matches(word) || blr.matches(word))
                return std::nullopt;
            if (bl.matches(word)) {
                std::optional<Way> result = called(call_target(word, words.address(i)));
                for (size_t number = 0; number <= lost_in_calls; number++)
                    held_[number].reset();
                held_[0] = std::move(result);
            } else if (!is_conditional(word)) { // one for a null pointer, and not taken
                follow(word);
            }
        }
        return std::nullopt;
    }

private:
    std::optional<Way> called(uint64_t address)
    {
        if (!held_[0] || depth_ >= Way::deepest)
            return std::nullopt;
        const std::vector<uint8_t> bytes = code_at_(address);
        return Walk(code_at_, held_[0], depth_ + 1).through({bytes, address});
    }

    void follow(uint32_t word)
    {
        if (const auto access = access_of(word)) {
            access_memory(*access);
            return;
        }
        std::optional<Way> value;
        if (add_immediate.matches(word) && rn(word) != x31)
            value = plus(held_[rn(word)], static_cast<int64_t>(added(word)));
        else if (move.matches(word) && rm(word) != x31)
            value = held_[rm(word)];
        held_[rd(word)] = std::move(value);
    }

    void access_memory(const Access& access)
    {
        std::optional<Way> place;
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
    std::array<std::optional<Way>, 32> held_;
};

} // namespace

std::optional<Path> path_of(const Code& code, const CodeAt& code_at)
{
    return path_by(Walk(code_at, Way{}, 0).through(code));
}

} // namespace gpusnoop::arm64
