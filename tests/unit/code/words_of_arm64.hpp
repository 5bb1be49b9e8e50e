// SPDX-License-Identifier: Apache-2.0
// Builds arm64 code from instruction words.
#pragma once

#include <cstdint>
#include <vector>

inline std::vector<uint8_t> bytes_of(const std::vector<uint32_t>& words)
{
    std::vector<uint8_t> bytes;
    for (const uint32_t word : words)
        for (int shift = 0; shift < 32; shift += 8)
            bytes.push_back(static_cast<uint8_t>(word >> shift));
    return bytes;
}
