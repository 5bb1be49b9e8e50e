// SPDX-License-Identifier: Apache-2.0
// Checkpoints in the formats of several versions of Kubernetes.
#include "tools/gpuspend/kubelet.hpp"

#include "tools/gpuspend/allotments.hpp"
#include "tools/gpuspend/machine_gpus.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

using namespace gpusnoop;

namespace {

// One line per grant: "UID CONTAINER DEVICE xPARTS".
std::string shown(const KubeletDevices& devices)
{
    std::vector<std::string> lines;
    for (const Grant& grant : devices.grants)
        lines.push_back(fmt::format("{} {} {} x{}\n", grant.pod_uid, grant.container, grant.device, grant.parts));
    std::ranges::sort(lines);
    std::string text;
    for (const std::string& line : lines)
        text += line;
    return text;
}

} // namespace

TEST_CASE("checkpoints up to Kubernetes 1.19 list devices", "[spend]")
{
    const auto devices = parse_kubelet_checkpoint(
        R"({"Data":{"PodDeviceEntries":[{"PodUID":"u1","ContainerName":"train","ResourceName":"nvidia.com/gpu",)"
        R"("DeviceIDs":["GPU-a","GPU-b"],"AllocResp":"CkIKFk5WSURJQQ=="},)"
        R"({"PodUID":"u2","ContainerName":"c","ResourceName":"intel.com/qat","DeviceIDs":["q"],"AllocResp":""}],)"
        R"("RegisteredDevices":{"nvidia.com/gpu":["GPU-a","GPU-b","GPU-c"],"intel.com/qat":["q"]}},"Checksum":2})");
    CHECK(devices.readable);
    CHECK(shown(devices) == "u1 train GPU-a x1\nu1 train GPU-b x1\n");
    CHECK(devices.parts == std::map<std::string, uint64_t>{{"GPU-a", 1}, {"GPU-b", 1}, {"GPU-c", 1}});
    CHECK(devices.resources == std::set<std::string>{"nvidia.com/gpu"});
}

TEST_CASE("checkpoints since Kubernetes 1.20 list devices by NUMA node", "[spend]")
{
    const auto devices = parse_kubelet_checkpoint(
        R"({"Data":{"PodDeviceEntries":[{"PodUID":"u1","ContainerName":"train","ResourceName":"nvidia.com/gpu",)"
        R"("DeviceIDs":{"-1":["GPU-c"],"0":["GPU-a"],"1":["GPU-b"]},"AllocResp":"CkI="}],)"
        R"("RegisteredDevices":{"nvidia.com/gpu":["GPU-a","GPU-b","GPU-c"]}},"Checksum":1,"BootID":"b"})");
    CHECK(shown(devices) == "u1 train GPU-a x1\nu1 train GPU-b x1\nu1 train GPU-c x1\n");
}

TEST_CASE("replicas of a shared device, and MIG instances, are parsed", "[spend]")
{
    const auto devices = parse_kubelet_checkpoint(
        R"({"Data":{"PodDeviceEntries":[)"
        R"({"PodUID":"u1","ContainerName":"a","ResourceName":"nvidia.com/gpu.shared",)"
        R"("DeviceIDs":{"0":["GPU-a::0","GPU-a::2"]}},)"
        R"({"PodUID":"u2","ContainerName":"a","ResourceName":"nvidia.com/mig-1g.10gb","DeviceIDs":{"0":["MIG-x"]}}],)"
        R"("RegisteredDevices":{"nvidia.com/gpu.shared":["GPU-a::0","GPU-a::1","GPU-a::2","GPU-a::3"],)"
        R"("nvidia.com/mig-1g.10gb":["MIG-x","MIG-y"]}},"Checksum":1})");
    CHECK(shown(devices) == "u1 a GPU-a x2\nu2 a MIG-x x1\n");
    CHECK(devices.parts == std::map<std::string, uint64_t>{{"GPU-a", 4}, {"MIG-x", 1}, {"MIG-y", 1}});
}

TEST_CASE("other files are not checkpoints", "[spend]")
{
    for (const char* text : {"", "{", "[]x", "\xff", R"({"Data":)"})
        CHECK(!parse_kubelet_checkpoint(text).readable);
    for (const char* text : {"{}", "null", R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":null}})",
                             R"({"Data":{"PodDeviceEntries":[{"PodUID":"","ResourceName":"nvidia.com/gpu",)"
                             R"("DeviceIDs":["GPU-a"]}]}})",
                             R"({"Data":{"PodDeviceEntries":[{"PodUID":7,"DeviceIDs":{"0":{"a":["GPU-a"]}}}]}})"})
        CHECK(parse_kubelet_checkpoint(text).grants.empty());
    // The number of ids is bounded.
    std::string many = R"({"Data":{"RegisteredDevices":{"nvidia.com/gpu":[)";
    for (int i = 0; i < 100'000; i++)
        many += fmt::format("{}\"GPU-{}\"", i ? "," : "", i);
    CHECK(parse_kubelet_checkpoint(many + "]}}}").parts.size() == 65'536);
    CHECK(!parse_kubelet_checkpoint(std::string(100'000, '[')).readable);
}

TEST_CASE("devices_in lists the devices in NVIDIA_VISIBLE_DEVICES", "[spend]")
{
    using Names = std::vector<std::string>;
    CHECK(devices_in("0-2,5") == Names{"0", "1", "2", "5"}); // a format of Slurm
    CHECK(devices_in("GPU-1-2") == Names{"GPU-1-2"});
    CHECK(devices_in("3-1") == Names{"3-1"});
    CHECK(devices_in("0-4294967295").size() == 64);
    CHECK(devices_in("GPU-a,GPU-b") == Names{"GPU-a", "GPU-b"});
    CHECK(devices_in("0,3") == Names{"0", "3"});
    for (const char* none : {"", "all", "none", "void", ",,"})
        CHECK(devices_in(none).empty());
}

TEST_CASE("a device is parsed from the driver's information file", "[spend]")
{
    const MachineGpu gpu = parse_gpu_information("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 120\n"
                                                 "GPU UUID: \t GPU-1b2c\nVideo BIOS: \t 96\nDevice Minor: \t 3\n",
                                                 "0000:3b:00.0");
    CHECK(gpu.id == "GPU-1b2c");
    CHECK(gpu.model == "NVIDIA H100 80GB HBM3");
    CHECK(gpu.minor == 3);
    const MachineGpu masked = parse_gpu_information("GPU UUID: GPU-????????\nDevice Minor: x\n", "0000:3b:00.0");
    CHECK(masked.id == "0000:3b:00.0");
    CHECK(!masked.minor);
}
