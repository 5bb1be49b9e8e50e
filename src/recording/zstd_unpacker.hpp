// SPDX-License-Identifier: Apache-2.0
// libzstd, as it reads recordings: frames (RFC 8878).
#pragma once

#include "recording/unpacker.hpp"

struct ZSTD_DCtx_s;

namespace gpusnoop {

class ZstdUnpacker final : public Unpacker {
public:
    static constexpr std::string_view begins_with = "\x28\xb5\x2f\xfd";

    ZstdUnpacker();
    ~ZstdUnpacker() override;

    State unpack(std::string_view& packed, std::string& to) override;
    void restart() override;
    std::string_view magic() const override { return begins_with; }

private:
    ZSTD_DCtx_s* context_;
};

} // namespace gpusnoop
