// SPDX-License-Identifier: Apache-2.0
// What the kernel side knows of memory (bpf/kinds/address.bpf.h) that went with a context: its epoch is over, and
// nothing finds it any more. Left alone it would fill the tables for as long as its process lives.
#pragma once

#include "base/bpf_map.hpp"
#include "bpf/shared/memory.h"
#include "proc/mapped_file.hpp"

#include <array>
#include <cstdint>
#include <map>

namespace gpusnoop {

class EndedEpochs {
public:
    // The kernel side's tables: of processes, of what is known by addresses and by handles, and of ranges.
    EndedEpochs(int spaces_fd, std::array<int, 2> places_fds, int ranges_fd)
        : spaces_(spaces_fd), places_fds_(places_fds), ranges_fd_(ranges_fd)
    {}

    // Takes out what has come to its end since the last time. To walk through the tables takes a while: there are
    // pauses, so that it is a twentieth of the time at most.
    void sweep();

private:
    HashTable<image, address_space> spaces_;
    std::array<int, 2> places_fds_;
    int ranges_fd_;
    std::map<ImageId, uint32_t> swept_; // epochs that were the newest then
    uint64_t not_before_ns_ = 0;
};

} // namespace gpusnoop
