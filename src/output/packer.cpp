// SPDX-License-Identifier: Apache-2.0
#include "output/packer.hpp"

#include <new>
#include <zstd.h>

namespace gpusnoop {

std::unique_ptr<Packer> packer_for(std::string_view path)
{
    if (path.ends_with(".gz"))
        return std::make_unique<Deflate>();
    if (path.ends_with(".zst"))
        return std::make_unique<ZstdPacker>();
    return nullptr;
}

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

namespace {

std::string run(ZSTD_CCtx* context, std::string_view text, ZSTD_EndDirective how)
{
    std::string out;
    ZSTD_inBuffer from{text.data(), text.size(), 0};
    size_t left = 0;
    do {
        char part[16 << 10];
        ZSTD_outBuffer to{part, sizeof(part), 0};
        left = ZSTD_compressStream2(context, &to, &from, how);
        if (ZSTD_isError(left))
            throw std::bad_alloc(); // nothing else can go wrong with text in memory
        out.append(part, to.pos);
    } while (left != 0);
    return out;
}

} // namespace

ZstdPacker::ZstdPacker() : context_(ZSTD_createCCtx())
{
    if (!context_)
        throw std::bad_alloc();
}

ZstdPacker::~ZstdPacker()
{
    ZSTD_freeCCtx(context_);
}

std::string ZstdPacker::packed(std::string_view text)
{
    return run(context_, text, ZSTD_e_flush);
}

std::string ZstdPacker::end()
{
    return run(context_, {}, ZSTD_e_end);
}

} // namespace gpusnoop
