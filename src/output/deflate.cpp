// SPDX-License-Identifier: Apache-2.0
#include "output/deflate.hpp"

#include <new>

namespace gpusnoop {

namespace {

constexpr int gzip = 16; // added to the size of the window, it asks for gzip's header (zlib.h)

} // namespace

Deflate::Deflate()
{
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::bad_alloc();
}

std::string Deflate::run(std::string_view text, int how)
{
    std::string out;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    do {
        char part[16 << 10];
        stream_.next_out = reinterpret_cast<Bytef*>(part);
        stream_.avail_out = sizeof(part);
        deflate(&stream_, how);
        out.append(part, sizeof(part) - stream_.avail_out);
    } while (stream_.avail_out == 0);
    return out;
}

} // namespace gpusnoop
