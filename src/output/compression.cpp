// SPDX-License-Identifier: Apache-2.0
#include "output/compression.hpp"

#include <algorithm>
#include <new>
#include <zlib.h>
#include <zstd.h>

namespace gpusnoop {

namespace {

constexpr std::string_view gzip_magic = "\x1f\x8b\x08";     // start of a gzip member that uses deflate (RFC 1952)
constexpr std::string_view zstd_magic = "\x28\xb5\x2f\xfd"; // start of a zstd frame (RFC 8878)
constexpr int gzip = 16; // added to the window bits to select the gzip format (zlib.h)

// Gzip compressor.
class Deflate final : public Compressor {
public:
    Deflate()
    {
        if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip, MAX_MEM_LEVEL,
                         Z_DEFAULT_STRATEGY) != Z_OK)
            throw std::bad_alloc();
    }
    ~Deflate() override { deflateEnd(&stream_); }

    std::string compress(std::string_view text) override { return run(text, Z_SYNC_FLUSH); }
    std::string end() override
    {
        std::string rest = run({}, Z_FINISH);
        deflateReset(&stream_);
        return rest;
    }
    std::string_view name() const override { return "gzip"; }
    std::string_view magic() const override { return gzip_magic; }

private:
    std::string run(std::string_view text, int flush)
    {
        std::string out;
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
        stream_.avail_in = static_cast<uInt>(text.size());
        do {
            char part[16 << 10];
            stream_.next_out = reinterpret_cast<Bytef*>(part);
            stream_.avail_out = sizeof(part);
            deflate(&stream_, flush);
            out.append(part, sizeof(part) - stream_.avail_out);
        } while (stream_.avail_out == 0);
        return out;
    }

    z_stream stream_{};
};

// Zstd compressor.
class ZstdCompressor final : public Compressor {
public:
    ZstdCompressor() : context_(ZSTD_createCCtx())
    {
        if (!context_)
            throw std::bad_alloc();
    }
    ~ZstdCompressor() override { ZSTD_freeCCtx(context_); }

    std::string compress(std::string_view text) override { return run(text, ZSTD_e_flush); }
    std::string end() override { return run({}, ZSTD_e_end); }
    std::string_view name() const override { return "zstd"; }
    std::string_view magic() const override { return zstd_magic; }

private:
    std::string run(std::string_view text, ZSTD_EndDirective directive)
    {
        std::string out;
        ZSTD_inBuffer from{text.data(), text.size(), 0};
        size_t left = 0;
        do {
            char part[16 << 10];
            ZSTD_outBuffer to{part, sizeof(part), 0};
            left = ZSTD_compressStream2(context_, &to, &from, directive);
            if (ZSTD_isError(left))
                throw std::bad_alloc(); // the only possible error
            out.append(part, to.pos);
        } while (left != 0);
        return out;
    }

    ZSTD_CCtx* context_;
};

class Inflate final : public Decompressor {
public:
    Inflate()
    {
        if (inflateInit2(&stream_, MAX_WBITS + gzip) != Z_OK)
            throw std::bad_alloc();
    }
    ~Inflate() override { inflateEnd(&stream_); }

    State unpack(std::string_view& packed, std::string& to) override
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
            return State::member_end;
        if (result == Z_OK || result == Z_BUF_ERROR) {
            begun_ = true;
            return State::more;
        }
        // zlib may have consumed the next member's magic bytes as part of this member.
        const size_t taken = all.size() - packed.size();
        const size_t next = all.find(gzip_magic, begun_ ? taken - std::min(taken, gzip_magic.size()) : 1);
        packed = all.substr(std::min(next, all.size()));
        damaged_.bytes = all.size() - packed.size();
        return State::damaged;
    }
    void restart() override
    {
        inflateReset(&stream_);
        begun_ = false;
    }

private:
    z_stream stream_{};
    bool begun_ = false; // part of the current gzip member has been decompressed
};

class ZstdDecompressor final : public Decompressor {
public:
    ZstdDecompressor() : context_(ZSTD_createDCtx()), part_(size_t{128} << 10, '\0') // ZSTD_BLOCKSIZE_MAX
    {
        if (!context_)
            throw std::bad_alloc();
    }
    ~ZstdDecompressor() override { ZSTD_freeDCtx(context_); }

    // Passes one block at a time to libzstd, although libzstd suggests a block plus the header of the next block: an
    // error in that header would discard the block's output. libzstd buffers output that does not fit into `out`, and
    // consumes no input until all buffered output has been fetched.
    State unpack(std::string_view& packed, std::string& to) override
    {
        ZSTD_inBuffer from{packed.data(), std::min(packed.size(), wanted_), 0}, nothing{nullptr, 0, 0};
        ZSTD_outBuffer out{part_.data(), part_.size(), 0};
        const bool began_before = !fed_.empty() || !is_begin_;
        size_t left = ZSTD_decompressStream(context_, &out, &from);
        if (ZSTD_isError(left))
            return skip_damage(packed);
        if (out.pos > 0) { // there is output, so libzstd has decoded all input of earlier calls
            fed_.clear();
            is_begin_ = !began_before;
        }
        fed_.append(packed.substr(0, from.pos));
        packed.remove_prefix(from.pos);
        while (!ZSTD_isError(left)) {
            to.append(part_, 0, out.pos);
            wanted_ = left > block_header ? left - block_header : left;
            if (left == 0)
                return State::member_end;
            if (out.pos < out.size)
                return State::more;
            out.pos = 0;
            left = ZSTD_decompressStream(context_, &out, &nothing);
        }
        return skip_damage(packed);
    }
    void restart() override
    {
        ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
        fed_.clear();
        is_begin_ = true;
        wanted_ = min_header;
    }

private:
    // If a run was killed while it wrote a block, the bytes that follow were written by the next run. They were parsed
    // as the rest of the block, so they must be read again.
    State skip_damage(std::string_view& packed)
    {
        const std::string all = fed_ + std::string(packed);
        const size_t next = std::min(all.find(zstd_magic, is_begin_), all.size());
        damaged_ = {next, next < fed_.size() ? fed_.substr(next) : std::string()};
        packed.remove_prefix(next < fed_.size() ? 0 : next - fed_.size());
        return State::damaged;
    }

    static constexpr size_t min_header = 5; // minimum size of a frame header in bytes, including the magic number
    static constexpr size_t block_header = 3;

    ZSTD_DCtx* context_;
    std::string part_;
    size_t wanted_ = min_header; // number of bytes to pass to libzstd next
    std::string fed_;            // the input that produced the last output, and all input since
    bool is_begin_ = true;       // fed_ starts at the beginning of a frame
};

} // namespace

std::unique_ptr<Compressor> compressor_for(std::string_view path)
{
    if (path.ends_with(".gz"))
        return std::make_unique<Deflate>();
    if (path.ends_with(".zst"))
        return std::make_unique<ZstdCompressor>();
    return nullptr;
}

std::unique_ptr<Decompressor> decompressor_for(std::string_view begin)
{
    if (begin.starts_with(gzip_magic))
        return std::make_unique<Inflate>();
    if (begin.starts_with(zstd_magic))
        return std::make_unique<ZstdDecompressor>();
    return nullptr;
}

} // namespace gpusnoop
