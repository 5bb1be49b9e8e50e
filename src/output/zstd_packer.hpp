// SPDX-License-Identifier: Apache-2.0
// libzstd, as files that are written bit by bit need it.
#pragma once

#include "output/packer.hpp"

struct ZSTD_CCtx_s;

namespace gpusnoop {

// A frame (RFC 8878).
class ZstdPacker final : public Packer {
public:
    static constexpr std::string_view begins_with = "\x28\xb5\x2f\xfd";

    ZstdPacker();
    ~ZstdPacker() override;

    std::string packed(std::string_view text) override;
    std::string end() override;
    std::string_view name() const override { return "zstd"; }
    std::string_view magic() const override { return begins_with; }

private:
    ZSTD_CCtx_s* context_;
};

} // namespace gpusnoop
