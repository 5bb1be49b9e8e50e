// SPDX-License-Identifier: Apache-2.0
// zlib, as it reads recordings: gzip members.
#pragma once

#include "output/unpacker.hpp"

#include <zlib.h>

namespace gpusnoop {

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
