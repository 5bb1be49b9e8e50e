// SPDX-License-Identifier: Apache-2.0
#include "gpu/amd_gpus.hpp"

#include "base/clock.hpp"
#include "gpu/amd_devices.hpp"
#include "gpu/amd_processes.hpp"

#include <utility>

namespace gpusnoop {
namespace {

class AmdGpus : public Nvml {
public:
    AmdGpus(std::vector<AmdDevice> devices, unsigned first, const std::string& root)
        : devices_(devices), first_(first), host_(root.empty() ? "/" : root),
          processes_(std::move(devices), first, root)
    {}

    unsigned devices() const override { return static_cast<unsigned>(devices_.size()); }
    std::vector<NvmlProcess> processes() override { return processes_.held(clock_ns(CLOCK_MONOTONIC)); }
    const std::vector<NvmlFailure>& failures() const override { return none_; }
    std::vector<NvmlUse> process_use() override { return processes_.use(clock_ns(CLOCK_MONOTONIC)); }

    std::vector<NvmlDeviceState> states() override
    {
        std::vector<NvmlDeviceState> all;
        for (const AmdDevice& device : devices_)
            all.push_back(amd_device_state(device, first_ + static_cast<unsigned>(all.size()), host_));
        return all;
    }

private:
    std::vector<AmdDevice> devices_;
    unsigned first_;
    HostFiles host_;
    AmdProcesses processes_;
    std::vector<NvmlFailure> none_;
};

} // namespace

std::unique_ptr<Nvml> open_amd_gpus(unsigned first, const std::string& root)
{
    std::vector<AmdDevice> devices = find_amd_devices(root);
    return devices.empty() ? nullptr : std::make_unique<AmdGpus>(std::move(devices), first, root);
}

} // namespace gpusnoop
