// SPDX-License-Identifier: Apache-2.0
// GPU performance monitoring (GPM), which Hopper and newer GPUs have: counters that are always there, and take nothing
// from the profilers. What is told is of the time between two samples.
#pragma once

#include "gpu/nvml.hpp"
#include "gpu/nvml_abi.hpp"
#include "gpu/nvml_symbols.hpp"

#include <map>
#include <utility>

namespace gpusnoop {

class NvmlGpm {
public:
    explicit NvmlGpm(const NvmlSymbols& symbols);
    NvmlGpm(const NvmlGpm&) = delete;
    NvmlGpm& operator=(const NvmlGpm&) = delete;

    static constexpr uint32_t whole = UINT32_MAX; // the device, and no instance of it

    // Of a device or of a GPU instance of it. The first call begins, and so does one after a failure: empty. Values
    // that cannot be are left out.
    NvmlEfficiency since_last(NvmlDevice device, uint32_t gpu_instance = whole);
    // Gives all samples back, while the library is still there.
    void end();

private:
    using Sample = struct nvmlGpmSample*;

    bool supports(NvmlDevice device);
    Sample take(NvmlDevice device, uint32_t gpu_instance) const; // null: it fails
    NvmlEfficiency between(Sample first, Sample second) const;

    int (*support_)(NvmlDevice, void*) = nullptr;
    int (*alloc_)(Sample*) = nullptr;
    int (*free_)(Sample) = nullptr;
    int (*get_)(NvmlDevice, Sample) = nullptr;
    int (*get_of_instance_)(NvmlDevice, unsigned, Sample) = nullptr;
    int (*metrics_)(void*) = nullptr;
    std::map<std::pair<NvmlDevice, uint32_t>, Sample> last_;
};

} // namespace gpusnoop
