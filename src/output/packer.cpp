// SPDX-License-Identifier: Apache-2.0
#include "output/packer.hpp"

#include "output/deflate.hpp"
#include "output/zstd_packer.hpp"

namespace gpusnoop {

std::unique_ptr<Packer> packer_for(std::string_view path)
{
    if (path.ends_with(".gz"))
        return std::make_unique<Deflate>();
    if (path.ends_with(".zst"))
        return std::make_unique<ZstdPacker>();
    return nullptr;
}

} // namespace gpusnoop
