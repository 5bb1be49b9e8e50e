// SPDX-License-Identifier: Apache-2.0
#include "bpf_map.hpp"

#include <cstring>

namespace gpusnoop {

void erase_image(int map_fd, uint32_t key_size, const image& image)
{
    std::vector<uint8_t> key(key_size), next(key_size);
    std::vector<std::vector<uint8_t>> found;
    // Deleting while walking would send the walk back to its start.
    for (bool first = true; bpf_map_get_next_key(map_fd, first ? nullptr : key.data(), next.data()) == 0;
         first = false) {
        key = next;
        if (memcmp(key.data(), &image, sizeof(image)) == 0)
            found.push_back(key);
    }
    for (const std::vector<uint8_t>& each : found)
        bpf_map_delete_elem(map_fd, each.data());
}

} // namespace gpusnoop
