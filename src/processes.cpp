// SPDX-License-Identifier: Apache-2.0
#include "processes.hpp"

#include "process.hpp"

#include <bpf/bpf.h>
#include <cstring>

namespace gpusnoop {
namespace {

constexpr uint64_t clock_tick_ns = 10'000'000; // USER_HZ is 100 on every architecture with CUDA

} // namespace

const ProcessInfo& Processes::info(const ImageId& image)
{
    ProcessInfo& info = known_[image];
    if (!fresh_.emplace(image, true).second)
        return info;
    if (!info.start_ns) {
        const ::image key = image;
        process_info from_kernel{};
        if (bpf_map_lookup_elem(map_fd_, &key, &from_kernel) == 0) {
            info.start_ns = from_kernel.start_ns;
            info.cgroup_id = from_kernel.cgroup_id;
            info.comm.assign(from_kernel.comm, strnlen(from_kernel.comm, sizeof(from_kernel.comm)));
        }
    }
    if (same_process(image))
        if (auto comm = process_name(static_cast<pid_t>(image.pid)))
            info.comm = *comm;
    return info;
}

// By start time: a pid may have been given to somebody else.
bool Processes::same_process(const ImageId& image)
{
    const uint64_t started = known_[image].start_ns;
    const uint64_t now = start_time_ns(static_cast<pid_t>(image.pid));
    return started && now && started - started % clock_tick_ns == now - now % clock_tick_ns;
}

bool Processes::gone(const ImageId& image)
{
    // A zombie has a start time, but no memory.
    return !same_process(image) || mappings(static_cast<pid_t>(image.pid)).empty();
}

void Processes::forget(const ImageId& image)
{
    const ::image key = image;
    bpf_map_delete_elem(map_fd_, &key);
    known_.erase(image);
    fresh_.erase(image);
}

} // namespace gpusnoop
