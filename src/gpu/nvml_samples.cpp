// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_samples.hpp"

#include "gpu/nvml_device.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace gpusnoop {

namespace {

constexpr unsigned clock_check_calls = 16; // check the driver's clock after this many consecutive calls without samples

// Rejects invalid samples. Some drivers report a count of 100 but write fewer samples, so the rest stay zero. Some
// write a percentage of 2147483632.
bool believable(const NvmlSample& sample)
{
    return nvml_has_pid(sample.pid) && sample.time_us > 0 && sample.sm <= 100;
}

std::vector<NvmlSample> samples_after(uint64_t after_us, NvmlSamplesFunction function, NvmlDevice device, int& code)
{
    std::vector<NvmlSample> room;
    unsigned capacity = 0; // the first call returns only the count
    for (int i = 0; i < nvml_max_tries; i++) {
        room.assign(capacity + size_t{1}, {});
        unsigned count = capacity;
        code = function(device, capacity ? room.data() : nullptr, &count, after_us);
        const bool wants_more = code == NVML_OK && capacity == 0 && count > 0;
        if ((code == NVML_INSUFFICIENT_SIZE && capacity < nvml_max_room) || wants_more) {
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

// Returns the mean SM percentage by pid. Drivers usually merge the new samples of a process into one sample. If there
// are several, each covers an equal part of the time, so their mean is used. Samples with the same time are duplicates.
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
    // If there are no new samples, either the device is idle, or the driver's clock was set back, so that new samples
    // seem old. The times of all samples that the driver has kept show which is the case.
    if (none && newest_us_ > 0 && ++empty_calls_ % clock_check_calls == 0)
        newest_us_ = newest_of(samples_after(0, function, device, code));
    if (code != NVML_OK && code != NVML_NOT_FOUND) {
        *this = {};
        return {};
    }
    if (none) {
        has_started_ = true;
        return {};
    }
    std::map<uint32_t, double> percent;
    if (has_started_)
        percent = means(samples, newest_us_);
    newest_us_ = newest_of(samples); // may decrease if the driver's clock was set back
    has_started_ = true;
    empty_calls_ = 0;
    return percent;
}

namespace {

// nvmlGpmSupport_t, version 1
struct Support {
    uint32_t version, supported;
};
static_assert(sizeof(Support) == 8);

// nvmlGpmMetric_t
struct Metric {
    uint32_t id;
    int code;
    double value;
    const char* names[3];
};
static_assert(sizeof(Metric) == 40);

// nvmlGpmMetricsGet_t, version 1. Its array has grown (98 elements in NVML 12.0, 210 in 12.9, 333 in 13) without a new
// struct version. The library should read only `count` elements; even if it reads the whole array, this one is large
// enough.
struct MetricsGet {
    uint32_t version, count;
    void *first, *second;
    std::array<Metric, 512> metrics;
};
static_assert(offsetof(MetricsGet, metrics) == 24);

constexpr uint32_t version_1 = 1; // value of the version fields of GPM structs; in other NVML structs, this field also
                                  // contains the size

struct GpmFigure {
    uint32_t id; // NVML_GPM_METRIC_...
    std::optional<double> NvmlEfficiency::*figure;
};
constexpr GpmFigure gpm_figures[] = {
    {2, &NvmlEfficiency::sm_active},     // SM_UTIL
    {3, &NvmlEfficiency::sm_occupancy},  // SM_OCCUPANCY
    {5, &NvmlEfficiency::tensor_active}, // ANY_TENSOR_UTIL
    {10, &NvmlEfficiency::dram_active},  // DRAM_BW_UTIL
};

} // namespace

NvmlGpm::NvmlGpm(const NvmlSymbols& symbols)
{
    symbols.find(support_, {"nvmlGpmQueryDeviceSupport"});
    symbols.find(alloc_, {"nvmlGpmSampleAlloc"});
    symbols.find(free_, {"nvmlGpmSampleFree"});
    symbols.find(get_, {"nvmlGpmSampleGet"});
    symbols.find(get_of_instance_, {"nvmlGpmMigSampleGet"});
    symbols.find(metrics_, {"nvmlGpmMetricsGet"});
}

bool NvmlGpm::supports(NvmlDevice device)
{
    const auto answer = nvml_fill(support_, device, Support{version_1, 0});
    return alloc_ && free_ && metrics_ && answer && answer->supported;
}

NvmlGpm::Sample NvmlGpm::take_sample(NvmlDevice device, uint32_t gpu_instance) const
{
    Sample sample = nullptr;
    if (alloc_(&sample) != NVML_OK || !sample)
        return nullptr;
    int code = NVML_FUNCTION_NOT_FOUND;
    if (gpu_instance == whole && get_)
        code = get_(device, sample);
    else if (gpu_instance != whole && get_of_instance_)
        code = get_of_instance_(device, gpu_instance, sample);
    if (code == NVML_OK)
        return sample;
    free_(sample);
    return nullptr;
}

NvmlEfficiency NvmlGpm::between(Sample first, Sample second) const
{
    MetricsGet get{version_1, static_cast<uint32_t>(std::size(gpm_figures)), first, second, {}};
    for (size_t i = 0; i < std::size(gpm_figures); i++)
        get.metrics[i].id = gpm_figures[i].id;
    NvmlEfficiency efficiency;
    if (metrics_(&get) != NVML_OK)
        return efficiency;
    for (size_t i = 0; i < std::size(gpm_figures); i++) {
        const Metric& metric = get.metrics[i];
        if (metric.id == gpm_figures[i].id && metric.code == NVML_OK && metric.value >= 0 && metric.value <= 100)
            efficiency.*gpm_figures[i].figure = metric.value;
    }
    return efficiency;
}

NvmlEfficiency NvmlGpm::since_last(NvmlDevice device, uint32_t gpu_instance)
{
    if (!supports(device))
        return {};
    Sample& last = last_[{device, gpu_instance}];
    const Sample now = take_sample(device, gpu_instance);
    const NvmlEfficiency efficiency = now && last ? between(last, now) : NvmlEfficiency();
    if (last)
        free_(last);
    last = now;
    return efficiency;
}

void NvmlGpm::end()
{
    for (const auto& [of, sample] : last_)
        if (sample)
            free_(sample);
    last_.clear();
}

} // namespace gpusnoop
