// SPDX-License-Identifier: Apache-2.0
// GPM: performance metrics of a device between two samples.
#include "answers.hpp"

namespace {

struct Support {
    uint32_t version, supported;
};

struct Metric {
    uint32_t id;
    int result;
    double value;
    const char* names[3];
};
static_assert(sizeof(Metric) == 40);

struct GpmSample {
    void* handle;      // the device
    uint32_t instance; // none: whole device
};

struct MetricsGet {
    uint32_t version, count;
    const GpmSample *first, *second;
    Metric metrics[1]; // an array of `count` elements
};

} // namespace

EXPORT int nvmlGpmQueryDeviceSupport(void* handle, Support* support)
{
    return of_device(handle, "gpm", [&](const Answers&, const Device& device) -> int {
        support->supported = !device.gpm.empty();
        return support->version == 1 ? ok : version_mismatch;
    });
}

EXPORT int nvmlGpmSampleAlloc(GpmSample** sample)
{
    *sample = new GpmSample{};
    return ok;
}

EXPORT int nvmlGpmSampleFree(GpmSample* sample)
{
    delete sample;
    return ok;
}

EXPORT int nvmlGpmSampleGet(void* handle, GpmSample* sample)
{
    *sample = {handle, none};
    return ok;
}

EXPORT int nvmlGpmMigSampleGet(void* handle, unsigned gpu_instance, GpmSample* sample)
{
    *sample = {handle, gpu_instance};
    return ok;
}

EXPORT int nvmlGpmMetricsGet(MetricsGet* get)
{
    if (get->version != 1 || get->first->handle != get->second->handle || get->first->instance != get->second->instance)
        return get->version != 1 ? version_mismatch : invalid_argument;
    return of_device(get->second->handle, "gpm", [&](const Answers&, const Device& device) -> int {
        const auto metrics = device.gpm.find(get->second->instance);
        if (metrics == device.gpm.end())
            return not_supported;
        for (Metric* metric = get->metrics; metric != get->metrics + get->count; metric++) {
            const auto found = metrics->second.find(metric->id);
            metric->result = found == metrics->second.end() ? not_supported : ok;
            metric->value = found == metrics->second.end() ? 0 : found->second;
        }
        return ok;
    });
}
