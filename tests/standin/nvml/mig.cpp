// SPDX-License-Identifier: Apache-2.0
// MIG devices of a GPU.
#include "answers.hpp"

namespace {

struct Attributes {
    uint32_t others[6];
    uint32_t gpu_instance_slices, compute_instance_slices;
    uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40);

int of_mig(const void* handle, uint32_t Mig::*figure, unsigned* to)
{
    const Answers answers = read_answers();
    const Mig* const mig = mig_of(answers, handle);
    if (!mig)
        return invalid_argument;
    *to = mig->*figure;
    return ok;
}

} // namespace

EXPORT int nvmlDeviceGetMaxMigDeviceCount(void* handle, unsigned* count)
{
    return of_device(handle, "migs", [&](const Answers&, const Device& device) {
        *count = device.slices.value_or(7);
        return ok;
    });
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void* handle, unsigned index, void** mig)
{
    return of_device(handle, "migs", [&](const Answers&, const Device& device) -> int {
        if (index >= device.migs.size())
            return not_found;
        *mig = &mig_handles[static_cast<char*>(handle) - handles][index];
        return ok;
    });
}

EXPORT int nvmlDeviceGetGpuInstanceId(void* handle, unsigned* id)
{
    return of_mig(handle, &Mig::gpu_instance, id);
}

EXPORT int nvmlDeviceGetComputeInstanceId(void* handle, unsigned* id)
{
    return of_mig(handle, &Mig::compute_instance, id);
}

EXPORT int nvmlDeviceGetAttributes_v2(void* handle, Attributes* attributes)
{
    const Answers answers = read_answers();
    const Mig* const mig = mig_of(answers, handle);
    if (!mig || !mig->slices)
        return not_supported;
    uint32_t of_gpu_instance = 0;
    for (const auto& [number, device] : answers.devices)
        if (!device.migs.empty() && mig >= &device.migs.front() && mig <= &device.migs.back())
            for (const Mig& one : device.migs)
                of_gpu_instance += one.gpu_instance == mig->gpu_instance ? one.slices : 0;
    *attributes = {{}, of_gpu_instance, mig->slices, 10240};
    return ok;
}
