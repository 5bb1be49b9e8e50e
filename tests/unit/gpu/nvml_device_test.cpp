// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/gpu/nvml_standin.hpp"

using namespace gpusnoop;
using namespace gpusnoop::nvml_standin;

namespace {

// Returns one line per device: "index name pci percent used/total watts mig".
std::string shown(const std::string& path)
{
    std::string lines;
    for (const NvmlDeviceState& s : open(path)->states())
        lines += fmt::format("{} {} {} {}% {}/{} {}W {}\n", s.index, s.name.empty() ? "-" : s.name,
                             s.pci.empty() ? "-" : s.pci, text(s.utilization), text(s.memory_used),
                             text(s.memory_total), text(s.power_watts), text(s.mig));
    return lines;
}

const std::string two = "device 0\nname NVIDIA H100 80GB HBM3\npci 0 3b 0\nutilization 97\n"
                        "memory 80000 3000 500\npower 123456\nmig 0\n"
                        "device 1\nname Tesla V100-SXM2\npci 10000 FF 1f\nutilization 0\nmemory 16000 0 200\npower 0\n";

} // namespace

TEST_CASE("state of devices", "[nvml]")
{
    const Answers answers(two);
    const std::string newer = "0 NVIDIA H100 80GB HBM3 0000:3b:00.0 97% 3000/80000 123.456W false\n"
                              "1 Tesla V100-SXM2 10000:ff:1f.0 0% 0/16000 0W -\n";
    const std::string older = "0 NVIDIA H100 80GB HBM3 0000:3b:00.0 97% 3500/80000 123.456W false\n"
                              "1 Tesla V100-SXM2 10000:ff:1f.0 0% 200/16000 0W -\n";
    CHECK(shown(standin()) == newer);
    CHECK(shown(answers.without({"PciInfo_v3"})) == newer);
    CHECK(shown(answers.without({"PciInfo_v3", "PciInfo_v2"})) == newer);
    CHECK(shown(answers.without({"MemoryInfo_v2"})) == older);
    for (const int code : {13, 25, 999}) { // supported by the library, but not by the driver
        answers.set(fmt::format("fail memory_v2 0 {0}\nfail memory_v2 1 {0}\n{1}", code, two));
        CHECK(shown(standin()) == older);
    }
}

TEST_CASE("fields that the driver does not report are unknown", "[nvml]")
{
    const Answers answers("device 0\ndevice 1\nutilization 5\n");
    CHECK(shown(standin()) == "0 - - -% -/- -W -\n1 - - 5% -/- -W -\n");
    for (const char* question : {"name", "pci", "utilization", "memory", "power", "mig"}) {
        answers.set(fmt::format("fail {0} 0 15\nfail {0}{1} 0 15\n{2}", question,
                                std::string(question) == "memory" ? "_v2" : "", two));
        INFO(question);
        const auto states = open(standin())->states();
        REQUIRE(states.size() == 2);
        const auto asked = [&](std::string_view name) { return name == question; };
        CHECK(states[0].name.empty() == asked("name"));
        CHECK(states[0].pci.empty() == asked("pci"));
        CHECK(states[0].utilization.has_value() != asked("utilization"));
        CHECK(states[0].memory_used.has_value() != asked("memory"));
        CHECK(states[0].memory_total.has_value() != asked("memory"));
        CHECK(states[0].power_watts.has_value() != asked("power"));
        CHECK(states[0].mig.has_value() != asked("mig"));
        CHECK(states[1].name == "Tesla V100-SXM2");
    }
    answers.set("fail device 0 15\n" + two);
    CHECK(shown(standin()).starts_with("0 - - -% -/- -W -\n1 Tesla V100-SXM2 "));
    answers.set(two);
    CHECK(shown(answers.without({"GetName", "PciInfo", "PciInfo_v2", "PciInfo_v3", "UtilizationRates", "MemoryInfo",
                                 "MemoryInfo_v2", "PowerUsage", "MigMode"})) ==
          "0 - - -% -/- -W -\n1 - - -% -/- -W -\n");
}

TEST_CASE("a device with MIG has no utilization", "[nvml]")
{
    const Answers answers("device 0\nutilization 50\nmig 1\n");
    CHECK(shown(standin()) == "0 - - -% -/- -W true\n");
    answers.set("device 0\nutilization 50\nmig 2\n"); // invalid mode
    CHECK(shown(standin()) == "0 - - 50% -/- -W -\n");
}

TEST_CASE("minor number and UUID of a GPU", "[nvml]")
{
    const Answers answers("device 0\nminor 3\nuuid GPU-1b2c\ndevice 1\nminor 0\ndevice 2\nuuid GPU-\\x1b\n"
                          "fail uuid 1 15\ndevice 3\nminor 255\n");
    const auto states = open(standin())->states();
    CHECK(states.at(0).minor == 3);
    CHECK(states.at(1).minor == 0);
    CHECK(!states.at(2).minor); // not reported
    CHECK(!states.at(3).minor); // 255 is the minor number of /dev/nvidiactl
    CHECK(states.at(0).uuid == "GPU-1b2c");
    CHECK(states.at(1).uuid.empty());
    CHECK(states.at(2).uuid == "GPU-\\x1B");
}

TEST_CASE("impossible values of a device are omitted", "[nvml]")
{
    const Answers answers("device 0\nutilization 101\npower 4294967295\nmemory 100 101 0\npci 0 100 0\n");
    CHECK(shown(standin()) == "0 - - -% -/- -W -\n");
    answers.set("device 0\nutilization 4294967295\nmemory 0 0 0\npci ffffffff ff 20\n"); // GPU that shares host memory
    CHECK(shown(standin()) == "0 - - -% -/- -W -\n");
    answers.set("device 0\nmemory 18446744073709551615 18446744073709551615 0\npci ffffffff ff 1f\n");
    CHECK(shown(standin()) == "0 - ffffffff:ff:1f.0 -% 18446744073709551615/18446744073709551615 -W -\n");
}

TEST_CASE("names of devices are made printable", "[nvml]")
{
    const Answers answers("device 0\nname A\\x1b[31mB\\x07\\xff\\x0aC\n");
    CHECK(open(standin())->states().at(0).name == "A\\x1B[31mB\\x07\\xFF\\x0AC");
    answers.set("device 0\nname " + std::string(500, 'x') + "\n"); // not terminated
    CHECK(open(standin())->states().at(0).name == std::string(96, 'x'));
}
