// SPDX-License-Identifier: Apache-2.0
// Compression of recordings, and decompression that tolerates truncated and damaged files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gpusnoop {

// After each call, everything compressed so far can be decompressed without the rest.
class Compressor {
public:
    Compressor() = default;
    virtual ~Compressor() = default;
    Compressor(const Compressor&) = delete;
    Compressor& operator=(const Compressor&) = delete;

    virtual std::string compress(std::string_view text) = 0;
    virtual std::string end() = 0; // ends the member; the next call begins a new one

    virtual std::string_view name() const = 0;
    virtual std::string_view magic() const = 0; // the first bytes of a compressed file
};

// Chosen by the suffix of the file name, .gz or .zst. Null: not compressed.
std::unique_ptr<Compressor> compressor_for(std::string_view path);

// Decompresses a recording: a sequence of members, some of which may be truncated.
class Decompressor {
public:
    Decompressor() = default;
    virtual ~Decompressor() = default;
    Decompressor(const Decompressor&) = delete;
    Decompressor& operator=(const Decompressor&) = delete;

    enum class State { more, member_end, damaged };
    // Decompresses a part of `packed`, removes it from there and appends at most 256 KiB to `to`. member_end: call
    // restart() next. damaged: the unreadable bytes up to a possible start of the next member were removed, too.
    virtual State unpack(std::string_view& packed, std::string& to) = 0;
    virtual void restart() = 0;

    struct Damaged {
        uint64_t bytes = 0; // bytes that were skipped
        // Input consumed earlier that may contain the start of the next member: prepend it to the rest of the input.
        std::string reread{};
    };
    // Valid after State::damaged.
    const Damaged& damaged() const { return damaged_; }

protected:
    Damaged damaged_;
};

// Chosen by the first bytes of a file. Null: not compressed.
std::unique_ptr<Decompressor> decompressor_for(std::string_view begin);

} // namespace gpusnoop
