// SPDX-License-Identifier: Apache-2.0
// libzstd, as it reads recordings: frames (RFC 8878).
#pragma once

#include "output/unpacker.hpp"

struct ZSTD_DCtx_s;

namespace gpusnoop {

class ZstdUnpacker final : public Unpacker {
public:
    static constexpr std::string_view begins_with = "\x28\xb5\x2f\xfd";

    ZstdUnpacker();
    ~ZstdUnpacker() override;

    State unpack(std::string_view& packed, std::string& to) override;
    void restart() override;

private:
    State leave_out(std::string_view& packed);

    static constexpr size_t least = 5; // of a frame's header, with the magic number
    static constexpr size_t header_of_block = 3;

    ZSTD_DCtx_s* context_;
    std::string part_;
    size_t wanted_ = least; // of the next block
    std::string fed_;       // to it, since it last gave something, and with that
    bool is_begin_ = true;  // of a frame, that
};

} // namespace gpusnoop
