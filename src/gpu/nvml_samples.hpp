// SPDX-License-Identifier: Apache-2.0
// SM utilization per process, from the driver's samples, and device counters from GPM.
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
    uint64_t time_us;                      // the driver's clock, which is the wall clock in all known drivers
    uint32_t sm, memory, encoder, decoder; // percent
};
static_assert(sizeof(NvmlSample) == 32);

// If `samples` is nullptr, sets `count` to the maximum number of samples. Otherwise, stores the samples that are newer
// than after_us. 0 means all samples that the driver has kept.
using NvmlSamplesFunction = int (*)(NvmlDevice, NvmlSample* samples, unsigned* count, unsigned long long after_us);

class NvmlSamples {
public:
    // Returns, by pid, the percentage of time since the last call during which the process used an SM. Processes
    // without samples are missing. The first call returns nothing, because its samples would cover the time before the
    // call. Empty if the driver does not sample the device (MIG, some GPUs).
    std::map<uint32_t, double> read(NvmlSamplesFunction function, NvmlDevice device);

private:
    uint64_t newest_us_ = 0; // time of the newest sample read
    bool has_started_ = false;
    unsigned empty_calls_ = 0; // consecutive calls without a sample
};

// GPU performance monitoring (GPM) of Hopper and newer GPUs. Its counters can be read at any time, even while a
// profiler runs. Each value covers the time between two samples.
class NvmlGpm {
public:
    explicit NvmlGpm(const NvmlSymbols& symbols);
    NvmlGpm(const NvmlGpm&) = delete;
    NvmlGpm& operator=(const NvmlGpm&) = delete;

    static constexpr uint32_t whole = UINT32_MAX; // the whole device instead of a GPU instance

    // Returns the values for the time since the last call for this device or GPU instance. Empty on the first call and
    // on the call after a failure. Impossible values are left out.
    NvmlEfficiency since_last(NvmlDevice device, uint32_t gpu_instance = whole);
    // Frees all samples. Must be called before the library is closed.
    void end();

private:
    using Sample = struct nvmlGpmSample*;

    bool supports(NvmlDevice device);
    Sample take_sample(NvmlDevice device, uint32_t gpu_instance) const; // null on failure
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
