// SPDX-License-Identifier: Apache-2.0
// How busy processes keep the SMs of one device, from the samples that the driver takes of it.
#pragma once

#include "gpu/nvml_abi.hpp"

#include <cstdint>
#include <map>
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

} // namespace gpusnoop
