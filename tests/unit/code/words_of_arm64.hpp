// SPDX-License-Identifier: Apache-2.0
// Builds arm64 code from instruction words.
#pragma once

#include <cstdint>
#include <vector>

using Code32 = std::vector<uint32_t>;

inline std::vector<uint8_t> bytes_of(const Code32& words)
{
    std::vector<uint8_t> bytes;
    for (const uint32_t word : words)
        for (int shift = 0; shift < 32; shift += 8)
            bytes.push_back(static_cast<uint8_t>(word >> shift));
    return bytes;
}

// Replaces the word at this index.
inline Code32 with(Code32 code, size_t at, uint32_t word)
{
    code.at(at) = word;
    return code;
}

// The first words.
inline Code32 first(const Code32& code, size_t count)
{
    return {code.begin(), code.begin() + static_cast<std::ptrdiff_t>(count)};
}
