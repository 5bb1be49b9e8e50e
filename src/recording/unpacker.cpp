// SPDX-License-Identifier: Apache-2.0
#include "recording/unpacker.hpp"

#include "recording/inflate.hpp"
#include "recording/zstd_unpacker.hpp"

namespace gpusnoop {

std::unique_ptr<Unpacker> unpacker_of(std::string_view begin)
{
    if (begin.starts_with(Inflate::begins_with))
        return std::make_unique<Inflate>();
    if (begin.starts_with(ZstdUnpacker::begins_with))
        return std::make_unique<ZstdUnpacker>();
    return nullptr;
}

} // namespace gpusnoop
