// SPDX-License-Identifier: Apache-2.0
// Who the process images on the kernel side are. A process that has gone keeps its name until it is forgotten.
#pragma once

#include "../bpf/process.h"
#include "kernel_names.hpp"

#include <map>
#include <string>

namespace gpusnoop {

struct ProcessInfo {
    uint64_t start_ns = 0; // CLOCK_BOOTTIME; 0 unknown
    uint64_t cgroup_id = 0;
    std::string comm; // of the group leader; empty unknown
};

class Processes {
public:
    explicit Processes(int map_fd) : map_fd_(map_fd) {}

    const ProcessInfo& info(const ImageId& image);
    // The image runs no more, though its pid may be taken again, or a zombie.
    bool gone(const ImageId& image);
    // Names change (prctl, exec): ask again on the next info().
    void refresh() { fresh_.clear(); }
    void forget(const ImageId& image);

private:
    bool same_process(const ImageId& image);

    int map_fd_;
    std::map<ImageId, ProcessInfo> known_;
    std::map<ImageId, bool> fresh_;
};

} // namespace gpusnoop
