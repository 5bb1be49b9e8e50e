// SPDX-License-Identifier: Apache-2.0
// What the kernel side could not do (bpf/loss.h), in words.
#pragma once

#include "../bpf/loss.h"
#include "output.hpp"

#include <array>
#include <vector>

namespace gpusnoop {

class Losses {
public:
    explicit Losses(int map_fd) : map_fd_(map_fd) {}

    // What has been lost since the last call.
    std::vector<Loss> since_last();
    // Since the beginning.
    std::vector<Loss> all() const;
    uint64_t sum() const;

private:
    std::array<uint64_t, LOSSES> read() const;

    int map_fd_;
    std::array<uint64_t, LOSSES> seen_{};
};

} // namespace gpusnoop
