// SPDX-License-Identifier: Apache-2.0
// Metrics pages captured from two running dcgm-exporters. Names, HELP and TYPE, the order of labels, and the formats of
// numbers are original; UUIDs and host names are replaced. The versions of dcgm-exporter are not known.
#include "tools/gpuspend/dcgm.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <string>

using namespace gpusnoop;

namespace {

std::string shown(const DcgmPage& of)
{
    std::string all;
    for (const auto& [key, gauges] : of.devices) {
        all += key.uuid + (key.gpu_instance ? fmt::format("/{}", *key.gpu_instance) : "");
        for (const auto& value : gauges.values)
            all += value ? fmt::format(" {}", *value) : " -";
        all += "\n";
    }
    return all;
}

struct Metric {
    std::string_view name, help, of_instances, of_gpu; // of_...: values; empty: not on the page
};

std::string head(const Metric& metric)
{
    return fmt::format("# HELP {} {}\n# TYPE {} gauge\n", metric.name, metric.help, metric.name);
}

} // namespace

// Driver 535.129.03, two A800: one with three GPU instances, one without MIG. Instances have no GPU_UTIL.
TEST_CASE("a captured page of an A800 with MIG", "[dcgm]")
{
    constexpr Metric metrics[] = {
        {"DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", "1410", "210"},
        {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", "", "0"},
        {"DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", "", "0"},
        {"DCGM_FI_DEV_ACCOUNTING_DATA", "Process Accounting Stats", "0", "0"},
        {"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", "19957", "81226"},
        {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", "10", "2"},
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active (in %).", "0.000000",
         "0.000000"},
        {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active (in %).", "0.000000",
         "0.000000"},
        {"DCGM_FI_PROF_DRAM_ACTIVE",
         "Ratio of cycles the device memory interface is active sending or receiving data (in %).", "0.000000",
         "0.000000"},
        {"DCGM_FI_PROF_PCIE_TX_BYTES",
         "The rate of data transmitted over the PCIe bus - including both protocol headers and data payloads - in "
         "bytes per second.",
         "", "143341"},
    };
    constexpr std::string_view common_labels = R"(Hostname="node1",DCGM_FI_DRIVER_VERSION="535.129.03",)"
                                               R"(DCGM_FI_PROCESS_NAME="/usr/bin/dcgm-exporter")";
    std::string page;
    for (const Metric& metric : metrics) {
        page += head(metric);
        for (const int instance : {3, 5, 6})
            if (!metric.of_instances.empty())
                page += fmt::format(R"({}{{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA A800-SXM4-80GB",)"
                                    R"(GPU_I_PROFILE="2g.20gb",GPU_I_ID="{}",{}}} {})"
                                    "\n",
                                    metric.name, instance, common_labels, metric.of_instances);
        page += fmt::format(R"({}{{gpu="1",UUID="GPU-b",device="nvidia1",modelName="NVIDIA A800-SXM4-80GB",{}}} {})"
                            "\n",
                            metric.name, common_labels, metric.of_gpu);
    }
    const DcgmPage parsed = parse_dcgm_page(page);
    CHECK(shown(parsed) == "GPU-a/3 - - 0 0 0 10485760\nGPU-a/5 - - 0 0 0 10485760\nGPU-a/6 - - 0 0 0 10485760\n"
                           "GPU-b - - 0 0 0 2097152\n");
    CHECK(parsed.unusable == 0);
}

// Driver 580.105.08, from a GPU operator on Kubernetes 1.35.
TEST_CASE("a captured page of a T4", "[dcgm]")
{
    constexpr Metric metrics[] = {
        {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", "", "0"},
        {"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", "", "14912"},
        {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", "", "0"},
        {"DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", "", "447"},
        {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", "", "14.512000"},
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.", "", "0.000000"},
        {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active.", "", "0.000000"},
        {"DCGM_FI_PROF_DRAM_ACTIVE", "Ratio of cycles the device memory interface is active sending or receiving data.",
         "", "0.000001"},
    };
    std::string page;
    for (const Metric& metric : metrics)
        page += head(metric) +
                fmt::format(R"({}{{gpu="0",UUID="GPU-c",pci_bus_id="00000000:00:1E.0",device="nvidia0",)"
                            R"(modelName="Tesla T4",Hostname="node2",DCGM_FI_DRIVER_VERSION="580.105.08"}} {})"
                            "\n",
                            metric.name, metric.of_gpu);
    const DcgmPage parsed = parse_dcgm_page(page);
    CHECK(shown(parsed) == "GPU-c - - 0 1 0 0\n");
    CHECK(parsed.unusable == 0);
}

TEST_CASE("engine activity replaces the utilization if a page has none", "[dcgm]")
{
    const std::string engine = "DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=\"GPU-a\"} 0.251000\n";
    CHECK(shown(parse_dcgm_page(engine)) == "GPU-a - - - - 251000 -\n");
    CHECK(shown(parse_dcgm_page(engine + "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 30\n")) == "GPU-a - - - - 300000 -\n");
    CHECK(shown(parse_dcgm_page("DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 30\n" + engine)) == "GPU-a - - - - 300000 -\n");
}
