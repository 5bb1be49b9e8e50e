// SPDX-License-Identifier: Apache-2.0
// Identifiers of GPUs, and their text form.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>

namespace gpusnoop {

// A GPU, identified by its number in one of several numbering schemes. The same GPU may have a different number in each
// scheme.
struct Gpu {
    enum class By : uint8_t {
        none,
        index,   // nvidia-smi's index
        file,    // N of /dev/nvidiaN; used if the index is unknown
        ordinal, // CUDA's device number, which depends on the process (CUDA_VISIBLE_DEVICES)
    };
    static constexpr uint16_t whole = UINT16_MAX;

    By by = By::none;
    uint16_t number = 0;
    uint16_t instance = whole; // id of the MIG GPU instance (gi) that the process uses
    uint16_t compute = whole;  // id of the MIG compute instance (ci), if the GPU instance has several

    // True if the number identifies the same GPU in all processes.
    bool is_machine_wide() const { return by == By::index || by == By::file; }
    auto operator<=>(const Gpu&) const = default;
};

// Returns a list such as "0,2-7", "nvidia2", "0/gi7" or "cuda:0,1", or several such lists separated by spaces. Empty if
// there are no GPUs.
std::string gpu_text(const std::set<Gpu>& gpus);

} // namespace gpusnoop
