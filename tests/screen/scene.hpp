// SPDX-License-Identifier: Apache-2.0
// Snapshots of a machine that does not exist, the same ones every time.
#pragma once

#include "snapshot.hpp"

namespace gpusnoop::scene {

struct Cast {
    size_t rows = 6;
    size_t gpus = 2;
};

// The interval of this number. Row i launches 100 x (i + 1) kernels a second and copies less the more it launches, but
// for those whose names are hostile.
Snapshot snapshot(const Cast& cast, uint64_t interval);

// What there is to see once the row is opened.
std::vector<DetailPart> detail(const std::string& id, uint64_t interval);

} // namespace gpusnoop::scene
