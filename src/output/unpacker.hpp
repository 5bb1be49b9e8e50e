// SPDX-License-Identifier: Apache-2.0
// What unpacks a recording: one member after the other, of which some may be cut off.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <zlib.h>

namespace gpusnoop {

class Unpacker {
public:
    Unpacker() = default;
    virtual ~Unpacker() = default;
    Unpacker(const Unpacker&) = delete;
    Unpacker& operator=(const Unpacker&) = delete;

    enum class State { goes_on, ended, damaged };
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
std::unique_ptr<Unpacker> unpacker_of(std::string_view begin);

// zlib, as it reads recordings: gzip members.
class Inflate final : public Unpacker {
public:
    static constexpr std::string_view begins_with = "\x1f\x8b\x08"; // RFC 1952

    Inflate();
    ~Inflate() override { inflateEnd(&stream_); }

    State unpack(std::string_view& packed, std::string& to) override;
    void restart() override
    {
        inflateReset(&stream_);
        begun_ = false;
    }

private:
    z_stream stream_{};
    bool begun_ = false; // with a member
};

} // namespace gpusnoop

// libzstd, as it reads recordings: frames (RFC 8878).
struct ZSTD_DCtx_s;

namespace gpusnoop {

class ZstdUnpacker final : public Unpacker {
public:
    static constexpr std::string_view begins_with = "\x28\xb5\x2f\xfd";

    ZstdUnpacker();
    ~ZstdUnpacker() override;

    State unpack(std::string_view& packed, std::string& to) override;
    void restart() override;

private:
    State leave_out(std::string_view& packed);

    static constexpr size_t least = 5; // of a frame's header, with the magic number
    static constexpr size_t header_of_block = 3;

    ZSTD_DCtx_s* context_;
    std::string part_;
    size_t wanted_ = least; // of the next block
    std::string fed_;       // to it, since it last gave something, and with that
    bool is_begin_ = true;  // of a frame, that
};

} // namespace gpusnoop
