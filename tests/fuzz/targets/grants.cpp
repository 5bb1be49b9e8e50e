// SPDX-License-Identifier: Apache-2.0
// GPU assignments of containers, from the kubelet, NVIDIA's DRA driver and environment variables.
#include "tools/gpuspend/grants.hpp"
#include "tests/fuzz/target.hpp"
#include "tools/gpuspend/allotments.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    const KubeletDevices devices = parse_kubelet_checkpoint(input);
    expect(devices.readable || (devices.grants.empty() && devices.parts.empty()),
           "unreadable checkpoints have no grants");
    for (const Grant& grant : devices.grants)
        expect(!grant.pod_uid.empty() && grant.parts > 0 && grant.device.find("::") == std::string::npos,
               "a grant assigns parts of one device to a pod");
    for (const auto& [device, parts] : devices.parts)
        expect(parts > 0, "a device has at least one part");
    for (const auto& claims : {parse_dra_pods(input), parse_dra_devices(input)})
        if (claims)
            for (const auto& [claim, values] : *claims)
                for (const std::string& value : values)
                    expect(value.size() <= 128 && claim.size() <= 128, "ids are bounded");
    for (const std::string& list :
         {allotment_in(input).visible_devices, allotment_in(input).slurm_gpus, std::string(input)})
        expect(devices_in(list).size() <= 64, "the list is bounded");
}
