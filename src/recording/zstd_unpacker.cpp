// SPDX-License-Identifier: Apache-2.0
#include "recording/zstd_unpacker.hpp"

#include <new>
#include <zstd.h>

namespace gpusnoop {

ZstdUnpacker::ZstdUnpacker() : context_(ZSTD_createDCtx())
{
    if (!context_)
        throw std::bad_alloc();
}

ZstdUnpacker::~ZstdUnpacker()
{
    ZSTD_freeDCtx(context_);
}

void ZstdUnpacker::restart()
{
    ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
}

// It keeps up to a block that there was no room for, and takes no more before that is out: a few bytes may be many
// blocks.
Unpacker::State ZstdUnpacker::unpack(std::string_view& packed, std::string& to)
{
    std::string part(size_t{128} << 10, '\0'); // ZSTD_BLOCKSIZE_MAX
    ZSTD_inBuffer from{packed.data(), packed.size(), 0}, nothing{nullptr, 0, 0};
    ZSTD_outBuffer out{part.data(), part.size(), 0};
    size_t left = ZSTD_decompressStream(context_, &out, &from);
    packed.remove_prefix(from.pos);
    while (!ZSTD_isError(left)) {
        to.append(part, 0, out.pos);
        if (left == 0)
            return State::ended;
        if (out.pos < out.size)
            return State::goes_on;
        out.pos = 0;
        left = ZSTD_decompressStream(context_, &out, &nothing);
    }
    return State::damaged;
}

} // namespace gpusnoop
