// SPDX-License-Identifier: Apache-2.0
// Encoder for the part of the Protocol Buffers wire format that pprof profiles need.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

class WireMessage {
public:
    void number(uint32_t field, uint64_t value)
    {
        key(field, 0);
        varint(value);
    }
    void bytes(uint32_t field, std::string_view value)
    {
        key(field, 2);
        varint(value.size());
        bytes_ += value;
    }
    void message(uint32_t field, const WireMessage& value) { bytes(field, value.bytes_); }
    void numbers(uint32_t field, std::span<const uint64_t> values) // as a packed repeated field
    {
        WireMessage all;
        for (const uint64_t value : values)
            all.varint(value);
        message(field, all);
    }

    const std::string& text() const { return bytes_; }

private:
    void key(uint32_t field, uint32_t kind) { varint(uint64_t{field} << 3 | kind); }
    // Seven bits per byte, least significant first; bit 7 marks a continuation.
    void varint(uint64_t value)
    {
        for (; value >= 0x80; value >>= 7)
            bytes_ += static_cast<char>(value | 0x80);
        bytes_ += static_cast<char>(value);
    }

    std::string bytes_;
};

} // namespace gpusnoop
