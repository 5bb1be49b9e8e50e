// SPDX-License-Identifier: Apache-2.0
// Texts and messages of drivers and NVML, and files that gpuspend reads.
#include "base/error.hpp"
#include "gpu/command_layouts.hpp"
#include "gpu/nvml_service.hpp"
#include "gpu/xids.hpp"
#include "tests/fuzz/target.hpp"
#include "tools/gpuspend/allotments.hpp"
#include "tools/gpuspend/dcgm.hpp"
#include "tools/gpuspend/grants.hpp"
#include "tools/gpuspend/prices.hpp"
#include "tools/gpuspend/spend_state.hpp"
#include "tools/gpuspend/teams.hpp"

#include <fmt/format.h>

using namespace gpusnoop;

// Xid lines of the kernel log, and the driver's version file. Xid lines contain a process name, which can be any text.
TARGET(driver_text)
{
    if (const auto line = parse_xid(input)) {
        for (const std::string& part : {line->device, line->comm, line->text}) {
            expect(part.find('\n') == std::string::npos, "fields contain no newline");
            expect(input.find(part) != std::string_view::npos, "the line contains each field");
        }
        expect(input.find(std::to_string(line->xid)) != std::string_view::npos, "the line contains the number");
    }
    if (const auto version = parse_driver_version(input)) {
        const auto again =
            parse_driver_version(fmt::format("{}.{}.{}\n", version->major, version->minor, version->patch));
        expect(again == version, "the version survives a round trip");
    }
}

// Messages of the NVML helper, whose memory NVML may have corrupted.
TARGET(nvml_message)
{
    const auto answers = answers_from(input);
    if (!answers)
        return;
    const std::string bytes = to_bytes(*answers);
    const auto again = answers_from(bytes);
    expect(again && to_bytes(*again) == bytes, "the message survives a round trip");
    expect(bytes.size() <= input.size(), "the message does not grow");
    expect(!answers_from(bytes + '\0') && !answers_from(std::string_view(bytes).substr(0, bytes.size() - 1)),
           "messages of another length are rejected");
}

// Metrics page of dcgm-exporter, and the HTTP response around it. Any local program may listen on its port.
TARGET(dcgm_page)
{
    const LoopbackResponse response = http_body(input);
    expect(response.text.empty() || response.error.empty(), "there is a body or an error, not both");
    const DcgmPage page = parse_dcgm_page(input);
    expect(page.devices.size() <= DcgmPage::max_devices && page.unusable <= 2 * page.series, "the page is bounded");
    for (const auto& [key, gauges] : page.devices) {
        expect(!key.uuid.empty() && key.uuid.size() <= 256, "each value belongs to a device");
        for (const Figure figure :
             {Figure::sm_active, Figure::sm_occupancy, Figure::tensor_active, Figure::dram_active, Figure::gpu_busy})
            expect(gauges.values[static_cast<size_t>(figure)].value_or(0) <= 1'000'000, "a ratio is at most 1");
    }
}

// GPU assignments of containers, from the kubelet, NVIDIA's DRA driver and environment variables.
TARGET(grants)
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

// Price lists and team lists of gpuspend.
TARGET(lists)
{
    try {
        const Prices prices(input, "f", "node");
        expect(prices.currency().size() == 3, "prices have a currency");
        for (const char* model : {"", "NVIDIA H100 80GB HBM3", "*"})
            expect(prices.of(model, 0).value_or(0) < 1'000'000 * micros_per_unit, "prices are bounded");
    } catch (const Error&) {}
    try {
        const Teams teams(input, "f");
        expect(teams.any(), "there is at least one team");
        Owner owner;
        owner.names.pod_namespace = owner.names.pod = "a";
        (void)teams.of(owner, "root");
    } catch (const Error&) {}
}

// gpuspend's state file. If the input is accepted, its times add up, and writing and reading it again changes nothing.
TARGET(spend_state)
{
    try {
        const SpendState state = SpendState::of(input, "f");
        const std::string text = state.text();
        expect(SpendState::of(text, "f").text() == text, "the state survives a round trip");
        for (const auto& [key, device] : state.ledger.devices()) {
            uint128 sum = device.unallocated_ns;
            for (const auto& [tenant, account] : device.tenants)
                sum += uint128{account.used_ns} + account.idle_ns;
            expect(sum == device.ns, "used, idle and unallocated time add up to the device's time");
        }
    } catch (const Error&) {}
}
