// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_samples.hpp"

#include <algorithm>

namespace gpusnoop {
namespace {

constexpr unsigned patience = 16; // calls

// Drivers have been seen to count 100 samples and to write fewer, which leaves what was in the room before, and to
// write a percentage of 2147483632: room that is zero and a look at each of them take care of both.
bool believable(const NvmlSample& sample)
{
    return nvml_has_pid(sample.pid) && sample.time_us > 0 && sample.sm <= 100;
}

std::vector<NvmlSample> samples_after(uint64_t after_us, NvmlSamplesFunction function, NvmlDevice device, int& code)
{
    std::vector<NvmlSample> room;
    unsigned capacity = 0; // the first call asks for the number
    for (int i = 0; i < nvml_max_tries; i++) {
        room.assign(capacity + size_t{1}, {});
        unsigned count = capacity;
        code = function(device, capacity ? room.data() : nullptr, &count, after_us);
        const bool asked_for_number = code == NVML_OK && capacity == 0 && count > 0;
        if ((code == NVML_INSUFFICIENT_SIZE && capacity < nvml_max_room) || asked_for_number) {
            capacity = nvml_more_room(capacity, count);
            continue;
        }
        room.resize(code == NVML_OK ? std::min(count, capacity) : 0);
        std::erase_if(room, [](const NvmlSample& sample) { return !believable(sample); });
        return room;
    }
    return {};
}

uint64_t newest_of(const std::vector<NvmlSample>& samples)
{
    uint64_t newest_us = 0;
    for (const NvmlSample& sample : samples)
        newest_us = std::max(newest_us, sample.time_us);
    return newest_us;
}

// The driver makes one sample of a process of all that are new. If it gives several they are each of a part of the time
// that was asked for, and the mean is of all of it: the newest alone would be of the last part. Two of the same moment
// are one that was told twice.
std::map<uint32_t, double> means(const std::vector<NvmlSample>& samples, uint64_t after_us)
{
    std::map<uint32_t, std::map<uint64_t, uint32_t>> by_time;
    for (const NvmlSample& sample : samples)
        if (sample.time_us > after_us) {
            uint32_t& sm = by_time[sample.pid][sample.time_us];
            sm = std::max(sm, sample.sm);
        }
    std::map<uint32_t, double> percent;
    for (const auto& [pid, times] : by_time) {
        uint64_t sum = 0;
        for (const auto& [time_us, sm] : times)
            sum += sm;
        percent[pid] = static_cast<double>(sum) / static_cast<double>(times.size());
    }
    return percent;
}

} // namespace

std::map<uint32_t, double> NvmlSamples::read(NvmlSamplesFunction function, NvmlDevice device)
{
    int code = NVML_OK;
    const auto samples = samples_after(newest_us_, function, device, code);
    const bool none = code == NVML_NOT_FOUND || (code == NVML_OK && samples.empty());
    // Idle, or its clock was set back: none will be newer than the newest of before for long. What it has kept says.
    if (none && newest_us_ > 0 && ++without_ % patience == 0)
        newest_us_ = newest_of(samples_after(0, function, device, code));
    if (code != NVML_OK && code != NVML_NOT_FOUND) {
        *this = {};
        return {};
    }
    if (none) {
        begun_ = true;
        return {};
    }
    std::map<uint32_t, double> percent;
    if (begun_)
        percent = means(samples, newest_us_);
    newest_us_ = newest_of(samples); // also if that is back in time
    begun_ = true;
    without_ = 0;
    return percent;
}

} // namespace gpusnoop
