// SPDX-License-Identifier: Apache-2.0
#include "bpf_map.hpp"

namespace gpusnoop {

size_t map_key_size(int fd)
{
    bpf_map_info info{};
    uint32_t size = sizeof(info);
    if (int error = bpf_map_get_info_by_fd(fd, &info, &size))
        throw Error("a BPF table cannot be read: " + errno_text(-error));
    return info.key_size;
}

void erase_images(int map_fd, const std::function<bool(const image&)>& gone)
{
    std::vector<uint8_t> key(map_key_size(map_fd)), next(key.size());
    std::vector<std::vector<uint8_t>> found;
    // Deleting while walking would send the walk back to its start.
    for (bool first = true; bpf_map_get_next_key(map_fd, first ? nullptr : key.data(), next.data()) == 0;
         first = false) {
        key = next;
        image of{};
        memcpy(&of, key.data(), sizeof(of));
        if (gone(of))
            found.push_back(key);
    }
    for (const std::vector<uint8_t>& each : found)
        bpf_map_delete_elem(map_fd, each.data());
}

} // namespace gpusnoop
