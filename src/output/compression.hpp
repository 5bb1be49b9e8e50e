// SPDX-License-Identifier: Apache-2.0
// Compression of recordings, and reading them back even if the end is missing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <zlib.h>

namespace gpusnoop {

// What is packed up to now can be unpacked, whether the rest comes or not.
class Packer {
public:
    Packer() = default;
    virtual ~Packer() = default;
    Packer(const Packer&) = delete;
    Packer& operator=(const Packer&) = delete;

    virtual std::string packed(std::string_view text) = 0;
    virtual std::string end() = 0; // afterwards it begins anew

    virtual std::string_view name() const = 0;
    virtual std::string_view magic() const = 0; // what all that it packs begins with
};

// By the end of the file's name, .gz or .zst. Null: plain.
std::unique_ptr<Packer> packer_for(std::string_view path);

// zlib, as files that are written bit by bit need it.

// A gzip member (RFC 1952), packed by deflate.
class Deflate final : public Packer {
public:
    Deflate();
    ~Deflate() override { deflateEnd(&stream_); }

    std::string packed(std::string_view text) override { return run(text, Z_SYNC_FLUSH); }
    std::string end() override
    {
        std::string rest = run({}, Z_FINISH);
        deflateReset(&stream_);
        return rest;
    }
    std::string_view name() const override { return "gzip"; }
    std::string_view magic() const override { return "\x1f\x8b\x08"; }

private:
    std::string run(std::string_view text, int how);

    z_stream stream_{};
};

} // namespace gpusnoop

// libzstd, as files that are written bit by bit need it.
struct ZSTD_CCtx_s;

namespace gpusnoop {

// A frame (RFC 8878).
class ZstdPacker final : public Packer {
public:
    static constexpr std::string_view begins_with = "\x28\xb5\x2f\xfd";

    ZstdPacker();
    ~ZstdPacker() override;

    std::string packed(std::string_view text) override;
    std::string end() override;
    std::string_view name() const override { return "zstd"; }
    std::string_view magic() const override { return begins_with; }

private:
    ZSTD_CCtx_s* context_;
};

} // namespace gpusnoop

// What unpacks a recording: one member after the other, of which some may be cut off.
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
