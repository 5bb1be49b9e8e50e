// SPDX-License-Identifier: Apache-2.0
#include "bpf_map.hpp"

#include <bpf/libbpf.h>
#include <cerrno>

namespace gpusnoop {
namespace {

bpf_map_info map_info(int fd)
{
    bpf_map_info info{};
    uint32_t size = sizeof(info);
    if (int error = bpf_map_get_info_by_fd(fd, &info, &size))
        throw Error("a BPF table cannot be read: " + errno_text(-error));
    return info;
}

size_t value_bytes(const bpf_map_info& info)
{
    if (info.type != BPF_MAP_TYPE_PERCPU_HASH && info.type != BPF_MAP_TYPE_LRU_PERCPU_HASH)
        return info.value_size;
    return (info.value_size + 7) / 8 * 8 * static_cast<size_t>(libbpf_num_possible_cpus());
}

} // namespace

HashReader::HashReader(int fd) : fd_(fd)
{
    const bpf_map_info info = map_info(fd);
    key_size_ = info.key_size;
    value_size_ = value_bytes(info);
}

bool HashReader::next()
{
    for (;; wanted_ *= 2) { // one bucket of the hash holds more than was asked for
        keys_.resize(wanted_ * key_size_);
        values_.resize(wanted_ * value_size_);
        count_ = wanted_;
        LIBBPF_OPTS(bpf_map_batch_opts, options);
        const int error = bpf_map_lookup_batch(fd_, first_ ? nullptr : &position_, &position_, keys_.data(),
                                               values_.data(), &count_, &options);
        if (error == -ENOSPC)
            continue;
        if (error && error != -ENOENT)
            throw Error("a BPF table cannot be read: " + errno_text(-error));
        first_ = false;
        return !error;
    }
}

void erase_images(int map_fd, const std::function<bool(const image&)>& gone)
{
    HashReader reader(map_fd);
    std::vector<std::vector<std::byte>> found;
    reader.for_each([&](const std::byte* key, const std::byte*) {
        image of{};
        memcpy(&of, key, sizeof(of));
        if (gone(of))
            found.emplace_back(key, key + reader.key_size());
    });
    for (const std::vector<std::byte>& key : found)
        bpf_map_delete_elem(map_fd, key.data());
}

} // namespace gpusnoop
