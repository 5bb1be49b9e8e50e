// SPDX-License-Identifier: Apache-2.0
// zlib, as it reads recordings: one gzip member after the other, of which some may be cut off.
#pragma once

#include <string>
#include <string_view>
#include <zlib.h>

namespace gpusnoop {

class Inflate {
public:
    // What each member begins with (RFC 1952).
    static constexpr std::string_view magic = "\x1f\x8b\x08";

    Inflate();
    ~Inflate() { inflateEnd(&stream_); }
    Inflate(const Inflate&) = delete;
    Inflate& operator=(const Inflate&) = delete;

    enum class State { goes_on, ended, damaged };
    // Appends what some of `packed` unpacks to, which is taken off its begin: no more than 64 KiB at a time. Ended: of
    // the member.
    State unpack(std::string_view& packed, std::string& to);
    void restart() { inflateReset(&stream_); }

private:
    z_stream stream_{};
};

} // namespace gpusnoop
