// SPDX-License-Identifier: Apache-2.0
#include "output/zstd_packer.hpp"

#include <new>
#include <zstd.h>

namespace gpusnoop {
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
