// SPDX-License-Identifier: Apache-2.0
// Parsing of the GPUs that a process's environment or a Kubernetes DRA claim lists.
#include "tools/gpuspend/allotments.hpp"
#include "tools/gpuspend/grants.hpp"

#include "tests/unit/base/sleeping_child.hpp"

#include <array>
#include <chrono>
#include <string>
#include <thread>

using namespace gpusnoop;
using namespace std::string_literals;

TEST_CASE("GPUs are parsed from an environment", "[spend]")
{
    const Allotment of = allotment_in("A=1\0NVIDIA_VISIBLE_DEVICES=GPU-a\0SLURM_STEP_GPUS=1\0SLURM_JOB_GPUS=0,1\0"s);
    CHECK(of.visible_devices == "GPU-a");
    CHECK(of.slurm_gpus == "0,1");
    CHECK(allotment_in("SLURM_STEP_GPUS=3\0XNVIDIA_VISIBLE_DEVICES=1"s).slurm_gpus == "3");
    CHECK(allotment_in("SLURM_STEP_GPUS=3\0XNVIDIA_VISIBLE_DEVICES=1"s).visible_devices.empty());
    CHECK(allotment_in("NVIDIA_VISIBLE_DEVICES=" + std::string(100'000, '1')).visible_devices.empty());
    CHECK(allotment_in("").slurm_gpus.empty());
}

TEST_CASE("an environment is read once, and forgotten when it is no longer requested", "[spend]")
{
    SleepingChild child([] {
        const std::array variables{"NVIDIA_VISIBLE_DEVICES=GPU-7", static_cast<const char*>(nullptr)};
        return execle("/bin/sleep", "sleep", "60", nullptr, variables.data()) == 0;
    });
    const auto pid = static_cast<uint32_t>(child.pid());
    Allotments allotments;
    for (int i = 0; i < 5000 && allotments.of(pid, 1).visible_devices.empty(); i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        allotments.sweep();
    }
    CHECK(allotments.of(pid, 1).visible_devices == "GPU-7");
    child.end();
    CHECK(allotments.of(pid, 1).visible_devices == "GPU-7");
    CHECK(allotments.of(pid, 2).visible_devices.empty()); // another process with that pid
    allotments.sweep();
    allotments.sweep();
    CHECK(allotments.of(pid, 1).visible_devices.empty());
}

TEST_CASE("pods of claims are parsed", "[dra]")
{
    // Kubernetes 1.32 and newer.
    const auto nested = parse_dra_pods(
        R"({"Data":"{\"kind\":\"DRACheckpoint\",\"Entries\":[{\"ClaimUID\":\"c1\",\"ClaimName\":\"gpu\",\"Namespace\":\"research\",)"
        R"(\"PodUIDs\":{\"p1\":{},\"p2\":{}},\"DriverState\":{\"gpu.nvidia.com\":{\"Devices\":[{\"PoolName\":\"n1\",\"DeviceName\":\"gpu-0\",)"
        R"(\"RequestNames\":[\"r\"],\"CDIDeviceIDs\":[\"k8s.gpu.nvidia.com/claim=c1-gpu-0\"]}]}}},)"
        R"({\"ClaimUID\":\"c2\",\"PodUIDs\":{}}]}","Checksum":123})");
    CHECK(nested == ByClaim{{"c1", {"p1", "p2"}}, {"c2", {}}});
    CHECK(parse_dra_pods(R"({"version":"v1","entries":[{"ClaimUID":"c1","PodUIDs":{"p1":{}}}],"checksum":1})") ==
          ByClaim{{"c1", {"p1"}}});
    CHECK(parse_dra_pods("{}"));
    for (const char* none : {"", "{", R"({"Data":"{"})", R"({"Data":"x"})"})
        CHECK(!parse_dra_pods(none));
    CHECK(parse_dra_pods(R"({"Entries":[{"ClaimUID":7,"PodUIDs":["p"]},{"PodUIDs":{"p":{}}}]})")->empty());
}

TEST_CASE("devices of claims are parsed", "[dra]")
{
    const auto devices = parse_dra_devices(
        R"({"checksum":1,"v1":{"preparedClaims":{}},"v2":{"nodeBootID":"b","preparedClaims":{)"
        R"("c1":{"checkpointState":"PrepareCompleted","name":"gpu","namespace":"research","preparedDevices":[{"devices":[)"
        R"({"gpu":{"info":{"uuid":"GPU-a","minor":0},"device":{"poolName":"n1"}}},{"gpu":{"info":{"uuid":"GPU-b"}}}],"configState":{}}]},)"
        R"("c2":{"preparedDevices":[{"devices":[{"mig":{"concrete":{"parentUUID":"GPU-c","parentMinor":1,"giId":3,"migUUID":"MIG-x"}}}]}]},)"
        R"("c3":{"checkpointState":"PrepareStarted"}}}})");
    CHECK(devices == ByClaim{{"c1", {"GPU-a", "GPU-b"}}, {"c2", {"MIG-x"}}});
    CHECK(!parse_dra_devices("["));
    CHECK(parse_dra_devices("[]")->empty());
}
