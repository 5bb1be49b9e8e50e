// SPDX-License-Identifier: Apache-2.0
// GPM values and MIG instances from valid, missing and invalid answers of NVML.
#include "tests/unit/gpu/nvml_standin.hpp"

using namespace gpusnoop;
using namespace gpusnoop::nvml_standin;

namespace {

std::string text(const NvmlEfficiency& e)
{
    std::string all;
    for (const auto& figure : {e.sm_active, e.sm_occupancy, e.tensor_active, e.dram_active})
        all += (all.empty() ? "" : " ") + (figure ? fmt::format("{:g}", *figure) : "-");
    return all;
}

// Returns the efficiency of device 0 at the second query.
std::string efficiency(const std::string& path)
{
    const auto nvml = open(path);
    CHECK(text(nvml->states().at(0).efficiency) == "- - - -"); // the first query only starts the measurement
    return text(nvml->states().at(0).efficiency);
}

std::string instances(const std::string& path)
{
    const auto nvml = open(path);
    nvml->states();
    std::string all;
    for (const NvmlDeviceState& state : nvml->states()) {
        all += fmt::format("{}:{}", state.index, state.slices);
        for (const NvmlInstance& one : state.instances) {
            std::string compute;
            for (const auto& part : one.parts)
                compute += fmt::format("{}{}:{} {}c", compute.empty() ? "" : "+", part.number, part.uuid, part.slices);
            all += fmt::format(" {} {}g {} [{}]", one.gpu_instance, one.slices, compute, text(one.efficiency));
        }
        all += "\n";
    }
    return all;
}

const std::string all_four = "gpm 2 61.5\ngpm 3 40\ngpm 5 12.25\ngpm 10 100\n";

} // namespace

TEST_CASE("efficiency of a device", "[nvml]")
{
    const Answers answers("device 0\n" + all_four + "device 1\n");
    CHECK(efficiency(standin()) == "61.5 40 12.25 100");
    CHECK(text(open(standin())->states().at(1).efficiency) == "- - - -");
    answers.set("device 0\ngpm 2 0\n"); // a library without some metrics
    CHECK(efficiency(standin()) == "0 - - -");
}

TEST_CASE("missing, failing and invalid performance monitors yield nothing", "[nvml]")
{
    const Answers answers("device 0\n");
    CHECK(efficiency(standin()) == "- - - -"); // no GPM, as on devices before Hopper
    answers.set("fail gpm 0 999\ndevice 0\n" + all_four);
    CHECK(efficiency(standin()) == "- - - -");
    answers.set("device 0\ngpm 2 100.5\ngpm 3 -1\ngpm 5 nan\ngpm 10 inf\n");
    CHECK(efficiency(standin()) == "- - - -");
    answers.set("device 0\n" + all_four);
    for (const char* symbol :
         {"GpmQueryDeviceSupport", "GpmSampleAlloc", "GpmSampleFree", "GpmSampleGet", "GpmMetricsGet"})
        CHECK(efficiency(answers.without({symbol})) == "- - - -");
    // A failure restarts the measurement.
    const auto nvml = open(standin());
    nvml->states();
    answers.set("fail gpm 0 15\ndevice 0\n" + all_four);
    CHECK(text(nvml->states().at(0).efficiency) == "- - - -");
    answers.set("device 0\n" + all_four);
    nvml->states();
    CHECK(text(nvml->states().at(0).efficiency) == "61.5 40 12.25 100");
}

TEST_CASE("MIG instances of a device and their efficiency", "[nvml]")
{
    const std::string parts =
        "instance 2 0 4 MIG-b\ninstance 1 0 2 MIG-a\ninstance 7 0 0 MIG-c\ninstance 7 1 0 MIG-d\ninstance 3 4 2 "
        "MIG-e\ninstance 3 1 1 MIG-f\n";
    const Answers answers("device 0\nmig 1\n" + parts +
                          "gpm 2 30 gi=1\ngpm 2 50\ndevice 1\nmig 0\ninstance 1 0 1 MIG-x\n");
    CHECK(instances(standin()) == "0:7 1 2g 0:MIG-a 2c [30 - - -] 2 4g 0:MIG-b 4c [- - - -] "
                                  "3 3g 4:MIG-e 2c+1:MIG-f 1c [- - - -] 7 3g 0:MIG-c 3c+1:MIG-d 3c [- - - -]\n1:0\n");
    // Without attributes, the size is read from the profile in the device's name.
    CHECK(instances(answers.without({"GetAttributes_v2"})).find("2 4g 0:MIG-b 4c") != std::string::npos);
    CHECK(instances(answers.without({"GpmMigSampleGet"})).find("1 2g 0:MIG-a 2c [- - - -]") != std::string::npos);
    answers.set("fail migs 0 999\ndevice 0\nmig 1\n" + parts);
    CHECK(instances(standin()) == "0:0\n");
    answers.set("device 0\nmig 1\nslices 4294967295\ninstance 4000 0 1 MIG-x\ninstance 3 0 77 MIG\\x1b\n");
    CHECK(instances(standin()) == "0:16 3 0g 0:MIG\\x1b 0c [- - - -]\n");
    answers.set("device 0\nmig 1\n" + parts);
    CHECK(instances(answers.without({"MaxMigDeviceCount"})) == "0:0\n");
}
