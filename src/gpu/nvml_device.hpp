// SPDX-License-Identifier: Apache-2.0
// NVML queries for the state of a device.
#pragma once

#include "gpu/nvml.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace gpusnoop {

using NvmlTextFunction = int (*)(NvmlDevice, char*, unsigned);
// Returns the text that an NVML function reports, in printable form; empty if it fails.
std::string nvml_text(NvmlTextFunction function, NvmlDevice device);

// Calls a function that fills a struct, and returns the struct; nullopt if the function fails. `given` is the struct's
// initial value. The buffer is larger than the struct, in case the function writes too much.
template<class T>
std::optional<T> nvml_fill(int (*function)(NvmlDevice, void*), NvmlDevice device, const T& given = {})
{
    struct {
        T value{};
        std::array<unsigned char, 256> more{};
    } answer{given};
    if (!function || function(device, &answer) != NVML_OK)
        return std::nullopt;
    return answer.value;
}

class NvmlDeviceQueries {
public:
    explicit NvmlDeviceQueries(const NvmlSymbols& symbols);

    // Values that NVML does not report, or that are impossible, stay empty. GPU instances are sorted by id.
    NvmlDeviceState ask(unsigned index, NvmlDevice device) const;

private:
    using Fill = int (*)(NvmlDevice, void*);
    using NumberFunction = int (*)(NvmlDevice, unsigned*);

    struct Slices {
        unsigned of_gpu_instance = 0, of_compute_instance = 0; // 0: not reported
    };

    std::string pci(NvmlDevice device) const;
    std::optional<unsigned> utilization(NvmlDevice device) const;
    std::optional<double> power_watts(NvmlDevice device) const;
    std::optional<bool> mig(NvmlDevice device) const;
    std::optional<unsigned> minor_number(NvmlDevice device) const;
    void add_memory(NvmlDevice device, NvmlDeviceState& state) const;
    Slices slices(NvmlDevice mig, std::string_view name) const;
    void add_instances(NvmlDevice device, NvmlDeviceState& state) const;

    NvmlTextFunction name_ = nullptr, uuid_ = nullptr;
    int (*mig_)(NvmlDevice, unsigned* current, unsigned* pending) = nullptr;
    Fill pci_ = nullptr, utilization_ = nullptr, memory_ = nullptr, memory_v2_ = nullptr, power_ = nullptr,
         minor_ = nullptr, attributes_ = nullptr;
    NumberFunction max_instances_ = nullptr, gpu_instance_ = nullptr, compute_instance_ = nullptr;
    int (*mig_handle_)(NvmlDevice, unsigned index, NvmlDevice*) = nullptr;
};

} // namespace gpusnoop
