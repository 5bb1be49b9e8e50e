// SPDX-License-Identifier: Apache-2.0
// What NVML says of a device as a whole.
#pragma once

#include "gpu/nvml.hpp"

#include <string_view>

namespace gpusnoop {

using NvmlTextFunction = int (*)(NvmlDevice, char*, unsigned);
// Printable; empty: it is not told.
std::string nvml_text(NvmlTextFunction function, NvmlDevice device);

class NvmlDeviceQueries {
public:
    explicit NvmlDeviceQueries(const NvmlSymbols& symbols);

    // What it does not say, or what cannot be, is left out.
    NvmlDeviceState ask(unsigned index, NvmlDevice device) const;

private:
    using Fill = int (*)(NvmlDevice, void*);

    std::string pci(NvmlDevice device) const;
    std::optional<unsigned> utilization(NvmlDevice device) const;
    std::optional<double> power_watts(NvmlDevice device) const;
    std::optional<bool> mig(NvmlDevice device) const;
    std::optional<unsigned> minor_number(NvmlDevice device) const;
    void add_memory(NvmlDevice device, NvmlDeviceState& state) const;

    NvmlTextFunction name_ = nullptr, uuid_ = nullptr;
    int (*mig_)(NvmlDevice, unsigned* current, unsigned* pending) = nullptr;
    Fill pci_ = nullptr, utilization_ = nullptr, memory_ = nullptr, memory_v2_ = nullptr, power_ = nullptr,
         minor_ = nullptr;
};

// The GPU instances that a device with MIG is divided in.
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
