// SPDX-License-Identifier: Apache-2.0
#include "recording/inflate.hpp"

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
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    stream_.next_out = reinterpret_cast<Bytef*>(part);
    stream_.avail_out = sizeof(part);
    const int result = inflate(&stream_, Z_SYNC_FLUSH);
    to.append(part, sizeof(part) - stream_.avail_out);
    packed.remove_prefix(packed.size() - stream_.avail_in);
    if (result == Z_STREAM_END)
        return State::ended;
    return result == Z_OK || result == Z_BUF_ERROR ? State::goes_on : State::damaged;
}

} // namespace gpusnoop
