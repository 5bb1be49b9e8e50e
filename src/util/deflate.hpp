// SPDX-License-Identifier: Apache-2.0
// zlib, as files that are written bit by bit need it.
#pragma once

#include <string>
#include <string_view>
#include <zlib.h>

namespace gpusnoop {

// A gzip member. What is packed up to now can be unpacked, whether the rest comes or not.
class Deflate {
public:
    Deflate();
    ~Deflate() { deflateEnd(&stream_); }
    Deflate(const Deflate&) = delete;
    Deflate& operator=(const Deflate&) = delete;

    std::string packed(std::string_view text) { return run(text, Z_SYNC_FLUSH); }
    std::string end() { return run({}, Z_FINISH); }

private:
    std::string run(std::string_view text, int how);

    z_stream stream_{};
};

} // namespace gpusnoop
