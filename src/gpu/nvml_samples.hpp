// SPDX-License-Identifier: Apache-2.0
// How busy processes keep the SMs of one device, from the samples that the driver takes of it.
#pragma once

#include "gpu/nvml.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace gpusnoop {

// nvmlProcessUtilizationSample_t
struct NvmlSample {
    uint32_t pid;
    uint64_t time_us;                      // the driver's clock; the time of day as far as was seen
    uint32_t sm, memory, encoder, decoder; // percent
};
static_assert(sizeof(NvmlSample) == 32);

// samples: nullptr to be told how many there may be. Those after a time, 0: all that the driver has kept.
using NvmlSamplesFunction = int (*)(NvmlDevice, NvmlSample* samples, unsigned* count, unsigned long long after_us);

class NvmlSamples {
public:
    // By pid, percent of the time since the last call; only those that the driver took a sample of. The first call
    // begins: what the driver has kept until then is of a time that nobody asked for. Empty where the device is not
    // sampled (MIG, some GPUs). Nothing of it is believed unseen.
    std::map<uint32_t, double> read(NvmlSamplesFunction function, NvmlDevice device);

private:
    uint64_t newest_us_ = 0; // of those that were read
    bool begun_ = false;
    unsigned without_ = 0; // calls in a row that there was none for
};

// GPU performance monitoring (GPM), which Hopper and newer GPUs have: counters that are always there, and take nothing
// from the profilers. What is told is of the time between two samples.
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
