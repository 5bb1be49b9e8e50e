// SPDX-License-Identifier: Apache-2.0
// Compression of recordings, and decompression that tolerates truncated and damaged files. A compressed file is a
// sequence of members (gzip) or frames (zstd), all called members here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gpusnoop {

// Compresses a stream of text. After each call, everything compressed so far can be decompressed without later data.
class Compressor {
public:
    Compressor() = default;
    virtual ~Compressor() = default;
    Compressor(const Compressor&) = delete;
    Compressor& operator=(const Compressor&) = delete;

    virtual std::string compress(std::string_view text) = 0;
    virtual std::string end() = 0; // ends the member; the next compress() begins a new member

    virtual std::string_view name() const = 0;
    virtual std::string_view magic() const = 0; // the first bytes of a compressed file
};

// Returns the compressor for the suffix of the file name, .gz or .zst; null for other names.
std::unique_ptr<Compressor> compressor_for(std::string_view path);

// Decompresses a sequence of members, some of which may be truncated or damaged.
class Decompressor {
public:
    Decompressor() = default;
    virtual ~Decompressor() = default;
    Decompressor(const Decompressor&) = delete;
    Decompressor& operator=(const Decompressor&) = delete;

    enum class State { more, member_end, damaged };
    // Decompresses the start of `packed`, removes it from `packed`, and appends at most 256 KiB to `to`. For damaged
    // data, also removes the unreadable bytes before the next possible start of a member. After member_end and damaged,
    // the caller must call restart().
    virtual State unpack(std::string_view& packed, std::string& to) = 0;
    virtual void restart() = 0;

    struct Damaged {
        uint64_t bytes = 0; // number of bytes skipped
        // Consumed input that may contain the start of the next member. The caller must prepend it to the remaining
        // input.
        std::string reread{};
    };
    // Valid after State::damaged.
    const Damaged& damaged() const { return damaged_; }

protected:
    Damaged damaged_;
};

// Returns the decompressor for a file that begins with these bytes; null if the file is not compressed.
std::unique_ptr<Decompressor> decompressor_for(std::string_view begin);

} // namespace gpusnoop
