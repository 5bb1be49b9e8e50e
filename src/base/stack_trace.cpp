// SPDX-License-Identifier: Apache-2.0
#include "base/stack_trace.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>

namespace gpusnoop {

std::vector<uint64_t> stack_trace(int fd, int32_t id)
{
    std::array<uint64_t, 127> frames{}; // kernel.perf_event_max_stack: no map of ours keeps more
    if (id < 0 || bpf_map_lookup_elem(fd, &id, frames.data()) != 0)
        return {};
    return {frames.begin(), std::ranges::find(frames, uint64_t{0})};
}

} // namespace gpusnoop
