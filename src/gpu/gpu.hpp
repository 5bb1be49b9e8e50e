// SPDX-License-Identifier: Apache-2.0
// The numbers of a GPU, and their text.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>

namespace gpusnoop {

// A GPU, by one of the numbers that it has; they are not the same, and none is taken for another.
struct Gpu {
    enum class By : uint8_t {
        none,
        index,   // nvidia-smi's
        file,    // N of /dev/nvidiaN, if its index is unknown
        ordinal, // CUDA's: each process counts its own, in an order that CUDA_VISIBLE_DEVICES may change
    };
    static constexpr uint16_t whole = UINT16_MAX;

    By by = By::none;
    uint16_t number = 0;
    uint16_t instance = whole; // MIG's (gi), where the process is on one
    uint16_t compute = whole;  // and the compute instance (ci) in that, where there are several

    // The same number is the same GPU for every process.
    bool is_machine_wide() const { return by == By::index || by == By::file; }
    auto operator<=>(const Gpu&) const = default;
};

// "0,2-7", "nvidia2", "0/gi7", "cuda:0,1", or several of them with a space between; empty: none.
std::string gpu_text(const std::set<Gpu>& gpus);

} // namespace gpusnoop
