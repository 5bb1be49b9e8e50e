// SPDX-License-Identifier: Apache-2.0
// What packs a file that is written bit by bit.
#pragma once

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
