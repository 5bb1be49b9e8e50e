// SPDX-License-Identifier: Apache-2.0
#include "output/inflate.hpp"

#include <algorithm>
#include <new>

namespace gpusnoop {

Inflate::Inflate()
{
    constexpr int gzip = 16; // added to the size of the window, it asks for gzip's header (zlib.h)
    if (inflateInit2(&stream_, MAX_WBITS + gzip) != Z_OK)
        throw std::bad_alloc();
}

Unpacker::State Inflate::unpack(std::string_view& packed, std::string& to)
{
    char part[64 << 10];
    const std::string_view all = packed;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    stream_.next_out = reinterpret_cast<Bytef*>(part);
    stream_.avail_out = sizeof(part);
    const int result = inflate(&stream_, Z_SYNC_FLUSH);
    to.append(part, sizeof(part) - stream_.avail_out);
    packed.remove_prefix(packed.size() - stream_.avail_in);
    if (result == Z_STREAM_END)
        return State::ended;
    if (result == Z_OK || result == Z_BUF_ERROR) {
        begun_ = true;
        return State::goes_on;
    }
    // What the next one begins with may have been taken for more of this one.
    const size_t taken = all.size() - packed.size();
    const size_t next = all.find(begins_with, begun_ ? taken - std::min(taken, begins_with.size()) : 1);
    packed = all.substr(std::min(next, all.size()));
    damaged_.bytes = all.size() - packed.size();
    return State::damaged;
}

} // namespace gpusnoop
