// SPDX-License-Identifier: Apache-2.0
#include "calls/call_rows.hpp"

#include <algorithm>

namespace gpusnoop {
namespace {

constexpr size_t table_bytes = 64 << 20;

// What the kernel side has in the fields that the table's key leaves out.
call_key key_defaults()
{
    call_key key{};
    key.duration = BUCKET_NONE;
    key.stack = -1;
    return key;
}

} // namespace

KernelCallRows::KernelCallRows(int map_fd, uint8_t& generation)
    : map_(map_fd, key_defaults()), capacity_(max_entries(map_fd)), generation_(generation)
{}

bool KernelCallRows::turn(uint8_t generation)
{
    generation_ = generation;
    return barrier_.wait();
}

size_t rows_for(size_t key_bytes, size_t possible_cpus)
{
    return std::clamp<size_t>(table_bytes / (key_bytes + sizeof(call_stats) * possible_cpus), 4096, 16384);
}

} // namespace gpusnoop
