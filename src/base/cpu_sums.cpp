// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_sums.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <numeric>

namespace gpusnoop {

std::vector<uint64_t> cpu_sums(int map_fd, size_t entries)
{
    const auto cpus = static_cast<size_t>(libbpf_num_possible_cpus());
    std::vector<uint32_t> keys(entries);
    std::vector<uint64_t> values(entries * cpus), sums(entries);
    auto count = static_cast<uint32_t>(entries);
    uint32_t position = 0;
    LIBBPF_OPTS(bpf_map_batch_opts, options);
    // Of per-CPU arrays from 5.13 on (f008d732ab18). ENOENT: they were the last.
    const int error = bpf_map_lookup_batch(map_fd, nullptr, &position, keys.data(), values.data(), &count, &options);
    if (error && error != -ENOENT)
        return sums;
    for (size_t i = 0; i < count; i++) {
        const auto* const of_entry = &values[i * cpus];
        sums.at(keys[i]) = std::accumulate(of_entry, of_entry + cpus, uint64_t{0});
    }
    return sums;
}

} // namespace gpusnoop
