// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_gpm.hpp"

#include <array>
#include <cstring>

namespace gpusnoop {
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

// nvmlGpmMetricsGet_t, version 1. Its array has grown with each release (98 in NVML 12.0, 210 in 12.9, 333 in 13) under
// the same version: the library reads `count` of it, and one that does not stays in this room.
struct MetricsGet {
    uint32_t version, count;
    void *first, *second;
    std::array<Metric, 512> metrics;
};
static_assert(offsetof(MetricsGet, metrics) == 24);

constexpr uint32_t version_1 = 1; // of both: a plain number, and not with the size as others have it

struct Asked {
    uint32_t id; // NVML_GPM_METRIC_...
    std::optional<double> NvmlEfficiency::*figure;
};
constexpr Asked asked[] = {
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
    struct {
        Support support{version_1, 0};
        std::array<unsigned char, 64> more{}; // what writes more than it should stays inside
    } answer;
    return support_ && alloc_ && free_ && metrics_ && support_(device, &answer) == NVML_OK && answer.support.supported;
}

NvmlGpm::Sample NvmlGpm::take(NvmlDevice device, uint32_t gpu_instance) const
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
    MetricsGet get{version_1, static_cast<uint32_t>(std::size(asked)), first, second, {}};
    for (size_t i = 0; i < std::size(asked); i++)
        get.metrics[i].id = asked[i].id;
    NvmlEfficiency efficiency;
    if (metrics_(&get) != NVML_OK)
        return efficiency;
    for (size_t i = 0; i < std::size(asked); i++) {
        const Metric& metric = get.metrics[i];
        if (metric.id == asked[i].id && metric.code == NVML_OK && metric.value >= 0 && metric.value <= 100)
            efficiency.*asked[i].figure = metric.value;
    }
    return efficiency;
}

NvmlEfficiency NvmlGpm::since_last(NvmlDevice device, uint32_t gpu_instance)
{
    if (!supports(device))
        return {};
    Sample& last = last_[{device, gpu_instance}];
    const Sample now = take(device, gpu_instance);
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
