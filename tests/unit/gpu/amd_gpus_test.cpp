// SPDX-License-Identifier: Apache-2.0
// AMD GPUs in a fake /sys and /proc, with existing, missing and invalid values.
#include "gpu/amd.hpp"

#include "tests/unit/gpu/amd_host.hpp"

#include <fmt/ranges.h>

using namespace gpusnoop;
using namespace gpusnoop::amd_host;

namespace {

constexpr uint64_t second = 1'000'000'000;

template<class Figure>
std::string text(const std::optional<Figure>& figure)
{
    return figure ? fmt::format("{}", *figure) : "-";
}

std::string shown(const NvmlDeviceState& s)
{
    return fmt::format("{} {} {} {} {}% {}/{} {}W {}", s.index, s.name, s.pci, s.uuid, text(s.utilization),
                       text(s.memory_used), text(s.memory_total), text(s.power_watts),
                       s.vendor == GpuVendor::amd ? "amd" : "nvidia");
}

struct Watched {
    AmdHost host;
    AmdGpus processes{find_amd_devices(host.path()), 4, host.path()};
    uint64_t now_ns = 100 * second;

    std::string held()
    {
        std::string all;
        for (const NvmlProcess& one : processes.held(now_ns))
            all += fmt::format("{}{}@{}={}", all.empty() ? "" : " ", one.pid, one.device, text(one.bytes));
        return all;
    }
    // Use `ns` later. Reads the memory first, as the tools do.
    std::string used_after(uint64_t ns)
    {
        now_ns += ns;
        held();
        return used();
    }
    std::string used()
    {
        std::string all;
        for (const NvmlUse& one : processes.use(now_ns))
            all += fmt::format("{}{}@{}: {} {} {}", all.empty() ? "" : ", ", one.pid, one.device, text(one.sm_percent),
                               text(one.cu_percent), text(one.sdma_percent));
        return all;
    }
};

std::string description(int client, const std::string& more, const char* pci = pci_0, const char* driver = "amdgpu")
{
    return fmt::format("drm-driver:\t{}\ndrm-pdev:\t{}\ndrm-client-id:\t{}\n{}", driver, pci, client, more);
}

} // namespace

TEST_CASE("AMD devices are read from sysfs", "[nvml]")
{
    const AmdHost host;
    const std::string root = host.path();
    host.device(pci_0, "product_name", "Instinct MI300X\n");
    host.device(pci_0, "gpu_busy_percent", "73\n");
    host.device(pci_0, "mem_info_vram_used", "1048576\n");
    host.device(pci_0, "mem_info_vram_total", "206141652992\n");
    host.device(pci_0, "hwmon/hwmon5/power1_average", "750500000\n");
    host.device(pci_1, "hwmon/hwmon6/power1_input", "31000000\n");
    const auto amd = open_amd_gpus(2, root);
    REQUIRE(amd);
    CHECK(amd->devices() == 2);
    const auto states = amd->states();
    CHECK(shown(states.at(0)) ==
          "2 AMD Instinct MI300X 0000:03:00.0 GPU-00001b2c0000a028 73% 1048576/206141652992 750.5W amd");
    CHECK(shown(states.at(1)) == "3 AMD gfx1103 0001:83:00.1 GPU-00001b2c0000a410 -% -/- 31W amd");
    const auto devices = find_amd_devices(root);
    CHECK(devices.at(0).compute_units == 76);
    CHECK(devices.at(1).compute_units == 96);
    CHECK(!open_amd_gpus(0, host.file("nothing")));
}

TEST_CASE("missing and invalid values of AMD devices are unknown", "[nvml]")
{
    const AmdHost host;
    const std::string root = host.path();
    for (const auto& [busy, used, total] :
         {std::tuple{"101\n", "5\n", "4\n"}, std::tuple{"-1\n", "x\n", "4\n"}, std::tuple{"", "", ""},
          std::tuple{"7 %\n", "18446744073709551616\n", "18446744073709551616\n"}}) {
        host.device(pci_0, "gpu_busy_percent", busy);
        host.device(pci_0, "mem_info_vram_used", used);
        host.device(pci_0, "mem_info_vram_total", total);
        CHECK(shown(open_amd_gpus(0, root)->states().at(0)) ==
              "0 AMD gfx942 0000:03:00.0 GPU-00001b2c0000a028 -% -/- -W amd");
    }
    host.device(pci_0, "product_name", "M\x1b[31m\n");
    CHECK(find_amd_devices(root).at(0).name == "AMD M\\x1B[31m");
    host.file("sys/class/kfd/kfd/topology/nodes/1/properties", "location_id\nunique_id x\n\n");
    CHECK(find_amd_devices(root).at(0).kfd_ids.empty());
}

TEST_CASE("a suspended AMD device is not woken up", "[nvml]")
{
    const AmdHost host;
    host.device(pci_0, "gpu_busy_percent", "0\n");
    host.device(pci_0, "power/runtime_status", "suspended\n");
    const auto states = open_amd_gpus(0, host.path())->states();
    CHECK(!states.at(0).utilization);
    CHECK(states.at(0).name == "AMD gfx942");
}

TEST_CASE("memory of processes on AMD devices", "[nvml]")
{
    Watched watched;
    const AmdHost& host = watched.host;
    CHECK(watched.held().empty());
    host.kfd(11, "vram_41000", "4096\n");
    host.kfd(11, "vram_42000", "0\n");
    host.kfd(12, "vram_41000", "0\n"); // a process that has only opened KFD, like rocm-smi
    host.kfd(13, "vram_41000", "0\n");
    host.kfd(13, "queues/0/gpuid", "42000"); // no newline
    host.kfd(14, "vram_99999", "7\n");       // memory on a device that does not exist
    host.kfd(15, "vram_41000", "nonsense\n");
    host.kfd(16, "vram_41000", "1000\n"); // Linux 7.3: two contexts
    host.kfd(16, "context_1/vram_41000", "500\n");
    host.kfd(16, "context_1/context_2/vram_41000", "1\n"); // ignored, because contexts do not nest
    CHECK(watched.held() == "11@4=4096 16@4=1500 13@5=0");
    host.kfd(11, "vram_41000", "8192\n");
    CHECK(watched.held() == "11@4=8192 16@4=1500 13@5=0");
}

TEST_CASE("memory and use of processes without ROCm on AMD devices", "[nvml]")
{
    Watched watched;
    const AmdHost& host = watched.host;
    const std::string memory = "drm-memory-vram:\t10 KiB\ndrm-memory-gtt:\t99 KiB\n";
    host.descriptor(21, 3, description(7, memory + "drm-engine-gfx:\t5000000000 ns\ndrm-engine-enc:\t9 ns\n"));
    host.descriptor(21, 4, description(7, memory)); // the same DRM client, which counts once
    host.descriptor(21, 5, description(8, "drm-memory-vram:\t1 MiB\n"));
    host.descriptor(22, 3, description(9, memory, "0000:00:02.0", "i915"));
    host.descriptor(23, 3, description(10, memory), "/tmp/file"); // not named like a DRM file
    host.descriptor(24, 3, description(11, "drm-memory-vram:\t10 GB\n"));
    CHECK(watched.held() == fmt::format("21@4={}", 10240 + 1048576));
    CHECK(watched.used().empty()); // the first call only starts the measurement
    host.descriptor(21, 3,
                    description(7, memory + "drm-engine-gfx:\t5500000000 ns\ndrm-engine-compute:\t100000000 ns\n"));
    CHECK(watched.used_after(2 * second) == "21@4: 30 - -");
    host.descriptor(21, 3, description(7, memory + "drm-engine-gfx:\t1 ns\n")); // the counter decreases
    CHECK(watched.used_after(second) == "21@4: 0 - -");
    // A process that opens a device later is found within seconds.
    host.descriptor(25, 3, description(12, "drm-memory-vram:\t2 KiB\n", pci_1));
    CHECK(watched.held().find("25@") == std::string::npos);
    watched.now_ns += 10 * second;
    CHECK(watched.held().find("25@5=2048") != std::string::npos);
}

TEST_CASE("memory on AMD devices of a process whose main thread has exited", "[nvml]")
{
    Watched watched;
    const AmdHost& host = watched.host;
    for (const char* empty : {"proc/26/fd", "proc/26/task/26/fd", "proc/26/task/27/fd"})
        host.folder(empty);
    host.link("proc/26/task/28/fd/3", "/dev/dri/renderD128");
    host.file("proc/26/task/28/fdinfo/3", "pos:\t0\n" + description(7, "drm-memory-vram:\t10 KiB\n"));
    CHECK(watched.held() == "26@4=10240");
}

TEST_CASE("use of AMD devices by processes with ROCm", "[nvml]")
{
    Watched watched;
    const AmdHost& host = watched.host;
    host.kfd(11, "vram_41000", "4096\n");
    host.kfd(11, "queues/0/gpuid", "41000");
    host.kfd(11, "stats_41000/cu_occupancy", "19\n");
    host.kfd(11, "sdma_41000", "1000000\n"); // us
    host.descriptor(11, 3, description(7, "drm-memory-vram:\t1 MiB\ndrm-engine-compute:\t1 ns\n"));
    CHECK(watched.held() == "11@4=1048576"); // the larger of KFD's and fdinfo's values, because they may overlap
    CHECK(watched.used() == "11@4: - 25 -");
    host.kfd(11, "sdma_41000", "3000000\n");
    CHECK(watched.used_after(2 * second) == "11@4: - 25 -"); // use of the copy engines is not known yet
    CHECK(watched.used_after(6 * second) == "11@4: - 25 25");
    host.kfd(11, "stats_41000/cu_occupancy", "0\n");
    CHECK(watched.used_after(second) == "11@4: - 0 25"); // the last seconds only
    std::filesystem::remove(
        host.file("sys/class/kfd/kfd/proc/11/stats_41000/cu_occupancy")); // RDNA does not have this file
    host.kfd(11, "sdma_41000", "2000000\n");
    CHECK(watched.used_after(5 * second) == "11@4: - - 0");
}
