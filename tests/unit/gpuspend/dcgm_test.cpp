// SPDX-License-Identifier: Apache-2.0
// Pages in the formats of several versions of dcgm-exporter, and invalid pages.
#include "tools/gpuspend/dcgm.hpp"

#include "base/clock.hpp"
#include "tests/unit/base/loopback_service.hpp"
#include "tests/unit/who/container_host.hpp"

#include <fmt/format.h>

using namespace gpusnoop;
using gpusnoop::loopback_service::Service;

namespace {

constexpr uint64_t second = 1'000'000'000;

// A page in the format of version 4.2, with a device that two pods share, and a device with MIG.
const std::string page =
    "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
    "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
    R"(DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",pci_bus_id="00000000:3B:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",DCGM_FI_DRIVER_VERSION="550.54.15",container="c",namespace="research",pod="trainer-0"} 97)"
    "\n"
    R"(DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",pci_bus_id="00000000:3B:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",DCGM_FI_DRIVER_VERSION="550.54.15",container="c",namespace="research",pod="trainer-1"} 97)"
    "\n"
    "# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).\n"
    "# TYPE DCGM_FI_DEV_FB_USED gauge\n"
    R"(DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"} 2048)"
    "\n"
    "# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned.\n"
    "# TYPE DCGM_FI_PROF_SM_ACTIVE gauge\n"
    R"(DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"} 0.615)"
    "\n"
    R"(DCGM_FI_PROF_SM_OCCUPANCY{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"} 0.4)"
    "\n"
    R"(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"} 0.000012)"
    "\n"
    R"(DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"} 1.2e-01)"
    "\n"
    R"(DCGM_FI_PROF_DRAM_ACTIVE{gpu="1",UUID="GPU-b",device="nvidia1",modelName="NVIDIA A100",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",Hostname="n1"} 0.5)"
    "\n"
    R"(DCGM_FI_PROF_DRAM_ACTIVE{gpu="1",UUID="GPU-b",device="nvidia1",modelName="NVIDIA A100",GPU_I_PROFILE="2g.20gb",GPU_I_ID="3",Hostname="n1"} 0.25)"
    "\n";

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
    const std::string a = "DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-a\"}";
    for (const std::string& line : {a + " NaN",
                                    a + " +Inf",
                                    a + " 1.01",
                                    a + " -0.1",
                                    a,
                                    a + " ",
                                    a + " x",
                                    a + " 0x1",
                                    a + " 0.5y",
                                    std::string("DCGM_FI_PROF_SM_ACTIVE 0.5"),
                                    std::string("DCGM_FI_PROF_SM_ACTIVE{"),
                                    std::string("DCGM_FI_PROF_SM_ACTIVE{gpu=\"0\"} 0.5"),
                                    std::string("DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-a} 0.5"),
                                    std::string("DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-a\\\"} 0.5"),
                                    std::string("DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-a\",GPU_I_ID=\"x\"} 0.5"),
                                    std::string("DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-a\",GPU_I_ID=\"256\"} 0.5"),
                                    "DCGM_FI_PROF_SM_ACTIVE{UUID=\"" + std::string(1000, 'x') + "\"} 0.5",
                                    std::string("DCGM_FI_DEV_FB_USED{UUID=\"GPU-a\"} 9.223372036854776e+18"),
                                    std::string("DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 7407936"),
                                    std::string("<html>"),
                                    std::string("\0\0", 2)}) {
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
    const container_host::Host folder;
    const std::string path = folder.path("page").string();
    Dcgm dcgm(path);
    dcgm.refresh(0);
    CHECK(dcgm.error() == "No such file or directory");
    folder.write("page", page);
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
    folder.write("page", "nothing\n");
    dcgm.refresh(30 * second);
    CHECK(dcgm.error() == "it has no DCGM series with a GPU UUID");
    Dcgm of_folder(folder.path("").string());
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
