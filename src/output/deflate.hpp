// SPDX-License-Identifier: Apache-2.0
// zlib, as files that are written bit by bit need it.
#pragma once

#include "output/packer.hpp"

#include <zlib.h>

namespace gpusnoop {

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
