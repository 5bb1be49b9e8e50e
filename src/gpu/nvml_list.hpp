// SPDX-License-Identifier: Apache-2.0
// A list of processes as NVML's functions fill it, whatever the layout of its elements is.
#pragma once

#include "gpu/nvml_abi.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusnoop {

// The layouts of nvmlProcessInfo_t are each other's beginnings: 16 bytes, 24 with the instances, 32 with the protected
// memory, which we do not need.
struct NvmlElement {
    uint32_t pid;
    uint32_t padding;
    uint64_t bytes;                          // all ones: not available
    uint32_t gpu_instance, compute_instance; // nvml_no_instance: no MIG
};
static_assert(sizeof(NvmlElement) == 24);
constexpr uint32_t nvml_no_instance = ~0u;

constexpr bool nvml_has_instance(uint32_t id)
{
    return id < 256;
}

constexpr size_t nvml_small_element = 16, nvml_large_element = 32;

using NvmlListFunction = int (*)(NvmlDevice, unsigned* count, void* elements);

struct NvmlList {
    NvmlListFunction function;
    size_t element; // bytes, as documented
};

// What the function says of the device; nothing of it, nor the counts, is believed unseen. `code`: NVML_OK, or why
// there are no elements.
std::vector<NvmlElement> read_nvml_list(const NvmlList& list, NvmlDevice device, int& code);

} // namespace gpusnoop
