// SPDX-License-Identifier: Apache-2.0
#include "output/compression.hpp"

#include <algorithm>
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

std::unique_ptr<Unpacker> unpacker_of(std::string_view begin)
{
    if (begin.starts_with(Inflate::begins_with))
        return std::make_unique<Inflate>();
    if (begin.starts_with(ZstdUnpacker::begins_with))
        return std::make_unique<ZstdUnpacker>();
    return nullptr;
}

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

ZstdUnpacker::ZstdUnpacker() : context_(ZSTD_createDCtx()), part_(size_t{128} << 10, '\0') // ZSTD_BLOCKSIZE_MAX
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
    fed_.clear();
    is_begin_ = true;
    wanted_ = least;
}

// Block by block, as it says how much it wants, which is a block and the header of the next one: of an error in that it
// does not say what it gave before. It keeps up to a block that there was no room for, and takes no more before that is
// out.
Unpacker::State ZstdUnpacker::unpack(std::string_view& packed, std::string& to)
{
    ZSTD_inBuffer from{packed.data(), std::min(packed.size(), wanted_), 0}, nothing{nullptr, 0, 0};
    ZSTD_outBuffer out{part_.data(), part_.size(), 0};
    const bool began_before = !fed_.empty() || !is_begin_;
    size_t left = ZSTD_decompressStream(context_, &out, &from);
    if (ZSTD_isError(left))
        return leave_out(packed);
    if (out.pos > 0) { // and so what came before is known to be whole
        fed_.clear();
        is_begin_ = !began_before;
    }
    fed_.append(packed.substr(0, from.pos));
    packed.remove_prefix(from.pos);
    while (!ZSTD_isError(left)) {
        to.append(part_, 0, out.pos);
        wanted_ = left > header_of_block ? left - header_of_block : left;
        if (left == 0)
            return State::ended;
        if (out.pos < out.size)
            return State::goes_on;
        out.pos = 0;
        left = ZSTD_decompressStream(context_, &out, &nothing);
    }
    return leave_out(packed);
}

// A block is taken as a whole. If half of it is missing, for the run was killed, the other half is what the next run
// wrote: that is read again.
Unpacker::State ZstdUnpacker::leave_out(std::string_view& packed)
{
    const std::string all = fed_ + std::string(packed);
    const size_t next = std::min(all.find(begins_with, is_begin_), all.size());
    damaged_ = {next, next < fed_.size() ? fed_.substr(next) : std::string()};
    packed.remove_prefix(next < fed_.size() ? 0 : next - fed_.size());
    return State::damaged;
}

} // namespace gpusnoop
