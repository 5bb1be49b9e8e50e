// SPDX-License-Identifier: Apache-2.0
// Compression of recordings, and reading them back even if the end is missing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gpusnoop {

// What is packed up to now can be unpacked, whether the rest comes or not.
class Compressor {
public:
    Compressor() = default;
    virtual ~Compressor() = default;
    Compressor(const Compressor&) = delete;
    Compressor& operator=(const Compressor&) = delete;

    virtual std::string compress(std::string_view text) = 0;
    virtual std::string end() = 0; // afterwards it begins anew

    virtual std::string_view name() const = 0;
    virtual std::string_view magic() const = 0; // what all that it packs begins with
};

// By the end of the file's name, .gz or .zst. Null: plain.
std::unique_ptr<Compressor> compressor_for(std::string_view path);

// What unpacks a recording: one member after the other, of which some may be cut off.
class Decompressor {
public:
    Decompressor() = default;
    virtual ~Decompressor() = default;
    Decompressor(const Decompressor&) = delete;
    Decompressor& operator=(const Decompressor&) = delete;

    enum class State { more, member_end, damaged };
    // Appends what some of `packed` unpacks to, which is taken off its begin: no more than 256 KiB at a time. Ended: of
    // the member. Damaged: what cannot be read is taken off, too, up to where the next member may begin.
    virtual State unpack(std::string_view& packed, std::string& to) = 0;
    virtual void restart() = 0;

    struct Damaged {
        uint64_t bytes = 0;  // that are left out
        std::string again{}; // of what was taken before: it may be the begin of the next member
    };
    // Of the last time that it was.
    const Damaged& damaged() const { return damaged_; }

protected:
    Damaged damaged_;
};

// By what the file begins with. Null: it is not packed.
std::unique_ptr<Decompressor> decompressor_for(std::string_view begin);

} // namespace gpusnoop
