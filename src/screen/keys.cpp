// SPDX-License-Identifier: Apache-2.0
#include "screen/keys.hpp"

#include <cstddef>

namespace gpusnoop {

namespace {

constexpr Key clicks = 0x40000000;
constexpr unsigned kind_shift = 24, y_shift = 12, coordinate = (1U << y_shift) - 1;

} // namespace

Key key_of(const Click& click)
{
    const auto bits = [](int value) { return static_cast<Key>(value) & coordinate; };
    return clicks | static_cast<Key>(click.kind) << kind_shift | bits(click.y) << y_shift | bits(click.x);
}

std::optional<Click> click_of(Key key)
{
    if (!(key & clicks))
        return std::nullopt;
    return Click{.kind = static_cast<Click::Kind>((key & ~clicks) >> kind_shift),
                 .x = static_cast<int>(key & coordinate),
                 .y = static_cast<int>(key >> y_shift & coordinate)};
}

std::vector<Key> without_sequences(const std::vector<Key>& typed)
{
    std::vector<Key> keys;
    for (size_t i = 0; i < typed.size(); ++i) {
        const Key next = i + 1 < typed.size() ? typed[i + 1] : 0;
        if (typed[i] != key::escape || (next != U'[' && next != U'O')) {
            keys.push_back(typed[i]);
            continue;
        }
        i += 2; // up to its last byte, which is a letter or '~'
        while (i < typed.size() && typed[i] >= 0x20 && typed[i] < 0x40)
            ++i;
    }
    return keys;
}

} // namespace gpusnoop
