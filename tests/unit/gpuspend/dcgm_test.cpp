// SPDX-License-Identifier: Apache-2.0
// Pages in the formats of several versions of dcgm-exporter, and invalid pages.
#include "tools/gpuspend/dcgm.hpp"

#include "base/clock.hpp"
#include "tests/unit/base/folder.hpp"
#include "tests/unit/base/loopback_service.hpp"

#include <fmt/format.h>
#include <span>

using namespace gpusnoop;
using gpusnoop::loopback_service::Service;

namespace {

constexpr uint64_t second = 1'000'000'000;

std::string series(std::string_view name, std::string_view labels, std::string_view value)
{
    return fmt::format("{}{{{}}} {}\n", name, labels, value);
}

std::string head(std::string_view name, std::string_view help)
{
    return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
}

// A page in the format of version 4.2, with a device that two pods share, and a device with MIG.
const std::string page = [] {
    constexpr auto gpu = R"(gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1")";
    constexpr auto in_pod = R"(gpu="0",UUID="GPU-a",pci_bus_id="00000000:3B:00.0",device="nvidia0",)"
                            R"(modelName="NVIDIA H100 80GB HBM3",Hostname="n1",DCGM_FI_DRIVER_VERSION="550.54.15",)"
                            R"(container="c",namespace="research",pod="trainer-{}")";
    constexpr auto mig = R"(gpu="1",UUID="GPU-b",device="nvidia1",modelName="NVIDIA A100",GPU_I_PROFILE="{}",)"
                         R"(GPU_I_ID="{}",Hostname="n1")";
    std::string all = head("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).");
    for (const int pod : {0, 1})
        all += series("DCGM_FI_DEV_GPU_UTIL", fmt::format(in_pod, pod), "97");
    all +=
        head("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).") + series("DCGM_FI_DEV_FB_USED", gpu, "2048");
    all += head("DCGM_FI_PROF_SM_ACTIVE", "The ratio of cycles an SM has at least 1 warp assigned.");
    for (const auto& [name, value] : {std::pair("SM_ACTIVE", "0.615"), std::pair("SM_OCCUPANCY", "0.4"),
                                      std::pair("PIPE_TENSOR_ACTIVE", "0.000012"), std::pair("DRAM_ACTIVE", "1.2e-01")})
        all += series(fmt::format("DCGM_FI_PROF_{}", name), gpu, value);
    return all + series("DCGM_FI_PROF_DRAM_ACTIVE", fmt::format(mig, "1g.10gb", 7), "0.5") +
           series("DCGM_FI_PROF_DRAM_ACTIVE", fmt::format(mig, "2g.20gb", 3), "0.25");
}();

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

std::string shown(std::string_view text)
{
    return shown(parse_dcgm_page(text));
}

// A metric of a captured page. Empty value: not on the page.
struct Metric {
    std::string_view name, help, of_gpu, of_instances;
};

// `gpu`, `instance`: labels; the latter with {} for the number of the GPU instance.
std::string captured(std::span<const Metric> metrics, std::string_view gpu, std::string_view instance = {})
{
    std::string all;
    for (const Metric& metric : metrics) {
        all += head(metric.name, metric.help);
        for (const int number : {3, 5, 6})
            if (!metric.of_instances.empty())
                all += series(metric.name, fmt::format(fmt::runtime(instance), number), metric.of_instances);
        all += series(metric.name, gpu, metric.of_gpu);
    }
    return all;
}

} // namespace

TEST_CASE("a page of dcgm-exporter is parsed", "[dcgm]")
{
    CHECK(shown(page) == "GPU-a 615000 400000 12 120000 970000 2147483648\n"
                         "GPU-b/3 - - - 250000 - -\nGPU-b/7 - - - 500000 - -\n");
    const DcgmPage parsed = parse_dcgm_page(page);
    CHECK(parsed.series == 9);
    CHECK(parsed.unusable == 0);
    // Names of DCGM 4.6, a blank after the comma as in the first versions, a timestamp, and CRLF.
    CHECK(
        shown("DCGM_FI_PROF_SM_UTIL_RATIO{gpu=\"0\", UUID=\"GPU-a\"} 1 1700000000000\r\n"
              "DCGM_FI_PROF_SM_OCCUPANCY_RATIO{UUID=\"GPU-a\",} 0\nDCGM_FI_PROF_TENSOR_UTIL_RATIO{UUID=\"GPU-a\"} 0.1\n"
              "DCGM_FI_PROF_DRAM_UTIL_RATIO{UUID=\"GPU-a\"} 0.2") == "GPU-a 1000000 0 100000 200000 - -\n");
}

TEST_CASE("values of pods and processes do not count as values of the device", "[dcgm]")
{
    const DcgmPage of = parse_dcgm_page("DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\",pod=\"x\"} 30\n"
                                        "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\",pod=\"y\"} 40\n"
                                        "DCGM_FI_DEV_FB_USED{UUID=\"GPU-a\",pid=\"7\"} 40\n"
                                        "DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-a\"} 0.5\n");
    CHECK(shown(of) == "GPU-a 500000 - - - - -\n");
    CHECK(of.unusable == 2);
}

TEST_CASE("invalid pages are rejected or ignored", "[dcgm]")
{
    const std::string name = "DCGM_FI_PROF_SM_ACTIVE";
    std::vector<std::string> lines{name + "{UUID=\"" + std::string(1000, 'x') + "\"} 0.5", std::string("\0\0", 2)};
    for (const char* value : {" NaN", " +Inf", " 1.01", " -0.1", "", " ", " x", " 0x1", " 0.5y"})
        lines.push_back(name + "{UUID=\"GPU-a\"}" + value);
    for (const char* labels : {"", "{", R"({gpu="0"})", R"({UUID="GPU-a})", R"({UUID="GPU-a\"})",
                               R"({UUID="GPU-a",GPU_I_ID="x"})", R"({UUID="GPU-a",GPU_I_ID="256"})"})
        lines.push_back(name + labels + " 0.5");
    for (const char* line : {R"(DCGM_FI_DEV_FB_USED{UUID="GPU-a"} 9.223372036854776e+18)",
                             R"(DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a"} 7407936)", "<html>"})
        lines.push_back(line);
    for (const std::string& line : lines) {
        INFO(line);
        CHECK(shown(line).empty());
    }
    CHECK(shown("DCGM_FI_PROF_SM_ACTIVE{modelName=\"a\\\\\",x=\"}\\\" \",UUID=\"GPU-a\"} 0.5") ==
          "GPU-a 500000 - - - - -\n");
    std::string many;
    for (int i = 0; i < 10'000; i++)
        many += fmt::format("DCGM_FI_PROF_SM_ACTIVE{{UUID=\"GPU-{}\"}} 0.5\n", i);
    CHECK(parse_dcgm_page(many).devices.size() == DcgmPage::max_devices);
    CHECK(parse_dcgm_page(many).unusable == 10'000 - DcgmPage::max_devices);
}

TEST_CASE("a page is read from a file unless it is too old", "[dcgm]")
{
    const Folder folder;
    const std::string path = folder.file("page");
    Dcgm dcgm(path);
    dcgm.refresh(0);
    CHECK(dcgm.error() == "No such file or directory");
    folder.file("page", page);
    dcgm.refresh(second); // the file is read again only after some seconds
    CHECK(!dcgm.error().empty());
    dcgm.refresh(10 * second);
    CHECK(dcgm.error().empty());
    REQUIRE(dcgm.of("GPU-b", 7));
    CHECK(!dcgm.of("GPU-b", {}));
    CHECK(!dcgm.of("GPU-c", {}));
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    dcgm.refresh(20 * second);
    CHECK(dcgm.error().find("written 36") != std::string::npos);
    CHECK(!dcgm.of("GPU-b", 7));
    folder.file("page", "nothing\n");
    dcgm.refresh(30 * second);
    CHECK(dcgm.error() == "it has no DCGM series with a GPU UUID");
    Dcgm of_folder(folder.path());
    of_folder.refresh(0);
    CHECK(of_folder.error() == "it is not a regular file");
}

TEST_CASE("a page is read from a service, which may stop", "[dcgm]")
{
    Service service;
    Dcgm dcgm(fmt::format("http://localhost:{}/metrics", service.port));
    const auto serve = [&](const std::string& text, uint64_t now_ns) {
        dcgm.refresh(now_ns);
        service.accept();
        dcgm.refresh(now_ns);
        service.request();
        service.send_text(text);
        service.end();
        for (int i = 0; i < 5000 && dcgm.error() == "it has not answered yet"; i++) {
            dcgm.refresh(now_ns);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    };
    serve("HTTP/1.0 200 OK\r\n\r\n" + page, second);
    CHECK(dcgm.error().empty());
    REQUIRE(dcgm.of("GPU-a", {}));
    CHECK(dcgm.of("GPU-a", {})->values[0] == 615'000);
    dcgm.refresh(60 * second); // a request without an answer
    CHECK(dcgm.of("GPU-a", {}));
    dcgm.refresh(100 * second);
    CHECK(!dcgm.of("GPU-a", {})); // too old
    CHECK(!dcgm.error().empty());
}

// Metrics pages captured from two running dcgm-exporters. Names, HELP and TYPE, the order of labels, and the formats of
// numbers are original; UUIDs and host names are replaced. The versions of dcgm-exporter are not known.
//
// Driver 535.129.03, two A800: one with three GPU instances, one without MIG. Instances have no GPU_UTIL.
TEST_CASE("a captured page of an A800 with MIG", "[dcgm]")
{
    constexpr Metric metrics[] = {
        {"DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", "210", "1410"},
        {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", "0", ""},
        {"DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", "0", ""},
        {"DCGM_FI_DEV_ACCOUNTING_DATA", "Process Accounting Stats", "0", "0"},
        {"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", "81226", "19957"},
        {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", "2", "10"},
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
         "143341", ""},
    };
    const std::string common = R"(modelName="NVIDIA A800-SXM4-80GB",{}Hostname="node1",)"
                               R"(DCGM_FI_DRIVER_VERSION="535.129.03",DCGM_FI_PROCESS_NAME="/usr/bin/dcgm-exporter")";
    const DcgmPage parsed = parse_dcgm_page(
        captured(metrics, R"(gpu="1",UUID="GPU-b",device="nvidia1",)" + fmt::format(fmt::runtime(common), ""),
                 R"(gpu="0",UUID="GPU-a",device="nvidia0",)" +
                     fmt::format(fmt::runtime(common), R"(GPU_I_PROFILE="2g.20gb",GPU_I_ID="{}",)")));
    CHECK(shown(parsed) == "GPU-a/3 - - 0 0 0 10485760\nGPU-a/5 - - 0 0 0 10485760\nGPU-a/6 - - 0 0 0 10485760\n"
                           "GPU-b - - 0 0 0 2097152\n");
    CHECK(parsed.unusable == 0);
}

// Driver 580.105.08, from a GPU operator on Kubernetes 1.35.
TEST_CASE("a captured page of a T4", "[dcgm]")
{
    constexpr Metric metrics[] = {
        {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", "0", ""},
        {"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", "14912", ""},
        {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", "0", ""},
        {"DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", "447", ""},
        {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", "14.512000", ""},
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.", "0.000000", ""},
        {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active.", "0.000000", ""},
        {"DCGM_FI_PROF_DRAM_ACTIVE", "Ratio of cycles the device memory interface is active sending or receiving data.",
         "0.000001", ""},
    };
    const DcgmPage parsed = parse_dcgm_page(
        captured(metrics, R"(gpu="0",UUID="GPU-c",pci_bus_id="00000000:00:1E.0",device="nvidia0",)"
                          R"(modelName="Tesla T4",Hostname="node2",DCGM_FI_DRIVER_VERSION="580.105.08")"));
    CHECK(shown(parsed) == "GPU-c - - 0 1 0 0\n");
    CHECK(parsed.unusable == 0);
}

TEST_CASE("engine activity replaces the utilization if a page has none", "[dcgm]")
{
    const std::string engine = "DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=\"GPU-a\"} 0.251000\n";
    CHECK(shown(engine) == "GPU-a - - - - 251000 -\n");
    CHECK(shown(engine + "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 30\n") == "GPU-a - - - - 300000 -\n");
    CHECK(shown("DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 30\n" + engine) == "GPU-a - - - - 300000 -\n");
}
