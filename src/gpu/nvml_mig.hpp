// SPDX-License-Identifier: Apache-2.0
// The GPU instances that a device with MIG is divided in.
#pragma once

#include "gpu/nvml.hpp"
#include "gpu/nvml_device.hpp"
#include "gpu/nvml_symbols.hpp"

#include <string_view>

namespace gpusnoop {

class NvmlMig {
public:
    explicit NvmlMig(const NvmlSymbols& symbols);

    // Adds the slices and the instances of a device whose MIG is on, in the order of their numbers.
    void add(NvmlDevice device, NvmlDeviceState& state) const;

private:
    using NumberFunction = int (*)(NvmlDevice, unsigned*);

    struct Slices {
        unsigned of_gpu_instance = 0, of_compute_instance = 0; // 0: not told
    };
    Slices slices(NvmlDevice mig, std::string_view name) const;

    NumberFunction most_ = nullptr, gpu_instance_ = nullptr, compute_instance_ = nullptr;
    int (*handle_)(NvmlDevice, unsigned index, NvmlDevice*) = nullptr;
    int (*attributes_)(NvmlDevice, void*) = nullptr;
    NvmlTextFunction name_ = nullptr, uuid_ = nullptr;
};

} // namespace gpusnoop
