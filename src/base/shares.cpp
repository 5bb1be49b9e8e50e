// SPDX-License-Identifier: Apache-2.0
#include "base/shares.hpp"

#include "bpf/shared/holding.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

namespace gpusnoop {
namespace {

void subtract(volatile __u64& from, uint64_t less)
{
    __atomic_fetch_sub(&from, less, __ATOMIC_RELAXED); // atomic, because BPF programs add to it
}

} // namespace

Shares::Shares(const bpf_object* object)
    : shares_fd_(bpf_object__find_map_fd_by_name(object, "shares")),
      held_fd_(bpf_object__find_map_fd_by_name(object, "held_bytes")),
      taken_(bpf_object__find_map_fd_by_name(object, "shared_taken"), 1)
{}

void Shares::release(std::span<const image> exited)
{
    volatile shared_taken& all = taken_[0];
    for (const image& each : exited) {
        share own{};
        if (bpf_map_lookup_elem(shares_fd_, &each, &own) == 0 && bpf_map_delete_elem(shares_fd_, &each) == 0)
            for (size_t table = 0; table < SHARED_TABLES; table++)
                subtract(all.entries[table], own.entries[table]);
        held_bytes held{};
        if (held_fd_ >= 0 && bpf_map_lookup_elem(held_fd_, &each, &held) == 0)
            subtract(all.entries[SHARED_HELD], held.entries);
    }
}

void Shares::set_rows(size_t taken)
{
    taken_[0].rows = taken;
}

void Shares::begin_new_rows()
{
    taken_[0].rows_since = taken_[0].rows_since + 1;
}

} // namespace gpusnoop
