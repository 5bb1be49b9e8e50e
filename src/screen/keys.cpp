// SPDX-License-Identifier: Apache-2.0
#include "screen/keys.hpp"

#include <cstddef>

namespace gpusnoop {

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
