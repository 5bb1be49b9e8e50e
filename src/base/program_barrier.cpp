// SPDX-License-Identifier: Apache-2.0
#include "base/program_barrier.hpp"

#include "base/error.hpp"

#include <bpf/bpf.h>
#include <cerrno>
#include <cstdint>

namespace gpusnoop {

// No system call waits for the programs by its name. Whoever changes a map of maps does: it returns when no program
// uses the old map any more, which the kernel finds out for all non-sleepable programs at once, by an RCU grace period
// (maybe_wait_bpf_programs(), 1ae80cf31938, 5.0). membarrier(2) would do nothing with one CPU, and fails with
// nohz_full.
ProgramBarrier::ProgramBarrier()
    : inner_(bpf_map_create(BPF_MAP_TYPE_ARRAY, "gpusnoop_inner", sizeof(uint32_t), sizeof(uint32_t), 1, nullptr))
{
    LIBBPF_OPTS(bpf_map_create_opts, options, .inner_map_fd = static_cast<uint32_t>(inner_.get()));
    if (inner_)
        outer_ = Fd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "gpusnoop_outer", sizeof(uint32_t), sizeof(uint32_t), 1,
                                   &options));
    if (!outer_)
        throw Error("a BPF table cannot be made: " + errno_text(errno));
}

bool ProgramBarrier::wait() const
{
    const uint32_t first = 0;
    const int inner = inner_.get();
    return bpf_map_update_elem(outer_.get(), &first, &inner, BPF_ANY) == 0;
}

} // namespace gpusnoop
