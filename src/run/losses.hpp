// SPDX-License-Identifier: Apache-2.0
// What the kernel side could not do (bpf/shared/loss.h), in words.
#pragma once

#include "bpf/shared/loss.h"
#include "rows/output.hpp"

#include <array>
#include <cstdint>
#include <vector>

struct bpf_object;

namespace gpusnoop {

class Losses {
public:
    // object: loaded; with a map of losses.
    explicit Losses(const bpf_object* object);

    // What has been lost since the last call.
    std::vector<Loss> since_last();
    uint64_t sum() const;                                             // of everything, since the beginning
    void add(loss what, uint64_t count) { added_.at(what) += count; } // that the front end has noticed

private:
    std::array<uint64_t, LOSSES> read() const;

    const bpf_object* object_;
    int map_fd_;
    std::array<uint64_t, LOSSES> seen_{}, added_{};
};

} // namespace gpusnoop
