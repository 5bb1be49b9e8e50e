// SPDX-License-Identifier: Apache-2.0
#include "output/unpacker.hpp"

#include "output/inflate.hpp"
#include "output/zstd_unpacker.hpp"

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
