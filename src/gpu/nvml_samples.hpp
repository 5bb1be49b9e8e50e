// SPDX-License-Identifier: Apache-2.0
// SM utilization by process, from the samples that the driver takes of a device.
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
    uint64_t time_us;                      // the driver's clock; the time of day on all drivers seen so far
    uint32_t sm, memory, encoder, decoder; // percent
};
static_assert(sizeof(NvmlSample) == 32);

// samples: nullptr to get the maximum count. after_us: only newer samples; 0: all that the driver has kept.
using NvmlSamplesFunction = int (*)(NvmlDevice, NvmlSample* samples, unsigned* count, unsigned long long after_us);

class NvmlSamples {
public:
    // By pid, percent of the time since the last call, for processes with samples. The first call returns nothing,
    // because older samples cover an earlier time. Empty if the device is not sampled (MIG, some GPUs). Samples are
    // validated.
    std::map<uint32_t, double> read(NvmlSamplesFunction function, NvmlDevice device);

private:
    uint64_t newest_us_ = 0; // time of the newest sample read
    bool has_started_ = false;
    unsigned empty_calls_ = 0; // consecutive calls without a sample
};

// GPU performance monitoring (GPM) of Hopper and newer GPUs: counters that are always available and do not exclude
// profilers. Figures cover the time between two samples.
class NvmlGpm {
public:
    explicit NvmlGpm(const NvmlSymbols& symbols);
    NvmlGpm(const NvmlGpm&) = delete;
    NvmlGpm& operator=(const NvmlGpm&) = delete;

    static constexpr uint32_t whole = UINT32_MAX; // the device, not an instance

    // For a device or one of its GPU instances. Empty on the first call and on the call after a failure. Impossible
    // values are left out.
    NvmlEfficiency since_last(NvmlDevice device, uint32_t gpu_instance = whole);
    // Frees all samples, while the library is still open.
    void end();

private:
    using Sample = struct nvmlGpmSample*;

    bool supports(NvmlDevice device);
    Sample take_sample(NvmlDevice device, uint32_t gpu_instance) const; // null: it failed
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
