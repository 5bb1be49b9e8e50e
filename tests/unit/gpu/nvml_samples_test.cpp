// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_samples.hpp"

#include "tests/unit/gpu/nvml_standin.hpp"

using namespace gpusnoop;
using namespace gpusnoop::nvml_standin;

namespace {

// Returns "device:pid=percent ...".
std::string shown(Nvml& nvml)
{
    std::string text;
    for (const auto& use : nvml.process_use())
        text += fmt::format("{}{}:{}={}", text.empty() ? "" : " ", use.device, use.pid, use.sm_percent.value_or(-1));
    return text;
}

const std::string before = "device 0\nsample 11 1000 90\nsample 12 2000 80\n";

} // namespace

TEST_CASE("utilization covers the time since the last query", "[nvml]")
{
    const Answers answers(before + "device 1\n");
    const auto nvml = open(standin());
    CHECK(shown(*nvml).empty()); // older samples are ignored
    CHECK(shown(*nvml).empty()); // no new samples
    answers.set(before + "sample 11 3000 40\nsample 12 2500 7\ndevice 1\nsample 11 500 100\n");
    CHECK(shown(*nvml) == "0:11=40 0:12=7 1:11=100"); // the time of the last sample is kept per device
    CHECK(shown(*nvml).empty());
    answers.set(before + "sample 11 3000 40\nsample 11 4000 0\ndevice 1\nsample 11 600 100\nsample 7 550 1\n");
    CHECK(shown(*nvml) == "0:11=0 1:7=1 1:11=100");
}

TEST_CASE("a device without samples at the first call", "[nvml]")
{
    const Answers answers("device 0\n");
    const auto nvml = open(standin());
    CHECK(shown(*nvml).empty());
    answers.set("device 0\nsample 11 1000 90\n"); // the first samples of a device without earlier samples are new
    CHECK(shown(*nvml) == "0:11=90");
}

TEST_CASE("several samples of one process are averaged", "[nvml]")
{
    const Answers answers("device 0\n");
    const auto nvml = open(standin());
    shown(*nvml);
    answers.set("device 0\nsample 11 3000 10\nsample 11 1000 30\nsample 11 2000 21\n");
    CHECK(fmt::format("{:.3f}", nvml->process_use().at(0).sm_percent.value_or(-1)) == "20.333");
    answers.set("device 0\nsample 11 4000 10\nsample 11 4000 10\nsample 11 4000 12\nsample 11 5000 20\n");
    CHECK(shown(*nvml) == "0:11=16"); // samples with the same time count once
}

TEST_CASE("devices without samples by process yield nothing", "[nvml]")
{
    const Answers answers("fail samples 0 3\ndevice 0\ndevice 1\n");
    const auto nvml = open(standin());
    shown(*nvml);
    for (const char* why : {"fail samples 0 3", "fail samples 0 15", "fail device 0 15"}) {
        answers.set(fmt::format("{}\ndevice 0\nsample 11 1000 5\ndevice 1\nsample 12 1000 6\n", why));
        INFO(why);
        CHECK(shown(*open(standin())).empty());
        const std::string first = shown(*nvml);
        CHECK((first.empty() || first == "1:12=6"));
        CHECK(nvml->failures().empty());
    }

    const auto older = open(answers.without({"ProcessUtilization"}));
    CHECK(shown(*older).empty());
    answers.set("device 0\nsample 11 2000 6\n");
    CHECK(shown(*older).empty());
}

TEST_CASE("after a failure of a device, its measurement restarts", "[nvml]")
{
    const Answers answers("device 0\nsample 11 1000 1\n");
    const auto nvml = open(standin());
    shown(*nvml);
    answers.set("device 0\nsample 11 2000 2\n");
    CHECK(shown(*nvml) == "0:11=2");
    unsigned time = 2000;
    for (const char* why : {"fail samples 0 15", "fail device 0 15", "fail samples 0 3"}) {
        INFO(why);
        answers.set(fmt::format("{}\ndevice 0\nsample 11 {} 3\n", why, time + 10));
        CHECK(shown(*nvml).empty());
        answers.set(fmt::format("device 0\nsample 11 {} 4\n", time + 20)); // includes the failure: not used
        CHECK(shown(*nvml).empty());
        answers.set(fmt::format("device 0\nsample 11 {} 5\n", time + 30));
        CHECK(shown(*nvml) == "0:11=5");
        time += 1000;
    }
}

TEST_CASE("impossible samples are ignored", "[nvml]")
{
    const Answers answers("device 0\n");
    const auto nvml = open(standin());
    shown(*nvml);
    answers.set("device 0\nsample 0 1000 5\nsample 4194305 1000 5\nsample 4294967295 1000 5\n"
                "sample 11 2000 2147483632\nsample 12 18446744073709551615 101\nsample 13 1500 100\n");
    CHECK(shown(*nvml) == "0:13=100");
    answers.set("device 0\nsample 13 1600 50\n"); // an ignored sample does not count as the last one
    CHECK(shown(*nvml) == "0:13=50");
    answers.set("device 0\nsample 11 3000 101\n");
    CHECK(shown(*nvml).empty());
}

TEST_CASE("the reported number of samples is not trusted", "[nvml]")
{
    const Answers answers("device 0\n");
    const auto nvml = open(standin());
    unsigned time = 1000;
    for (const char* lie : {"need 100\nclaim 100", "need 4000000000", "need 4000000000\nclaim 4000000000", "need 0",
                            "claim 4000000000"}) {
        shown(*nvml);
        time += 1000;
        answers.set(fmt::format("{}\ndevice 0\nsample 11 {} 5\nsample 12 {} 6\n", lie, time, time));
        INFO(lie);
        CHECK(shown(*nvml) == "0:11=5 0:12=6");
    }
    answers.set(fmt::format("claim 0\ndevice 0\nsample 11 {} 5\n", time + 1000));
    CHECK(shown(*nvml).empty());

    // `never` reads from a function that always reports that the buffer is too small, `polite` from one that reports
    // the needed size without an error.
    NvmlSamples never, polite;
    static unsigned calls;
    calls = 0;
    const auto insatiable = [](NvmlDevice, NvmlSample*, unsigned* count, unsigned long long) -> int {
        calls++;
        *count = ~0u;
        return NVML_INSUFFICIENT_SIZE;
    };
    CHECK(never.read(insatiable, nullptr).empty());
    CHECK(calls == 2);
    const auto ready = [](NvmlDevice, NvmlSample* samples, unsigned* count, unsigned long long after_us) -> int {
        if (samples)
            samples[0] = {11, after_us + 1, 5, 0, 0, 0};
        *count = 1;
        return NVML_OK;
    };
    CHECK(polite.read(ready, nullptr).empty());
    CHECK(polite.read(ready, nullptr).at(11) == 5);
}

TEST_CASE("sampling recovers if the times of samples go back", "[nvml]")
{
    const std::string late = "device 0\nsample 11 9000 90\n", early = "device 0\nsample 11 100 10\n";
    const Answers answers("stale\n" + late);
    const auto nvml = open(standin());
    shown(*nvml);
    CHECK(shown(*nvml).empty()); // unchanged

    SECTION("the driver returns older samples")
    {
        answers.set("stale\n" + early);
        CHECK(shown(*nvml).empty());
        answers.set("stale\n" + early + "sample 11 200 20\nsample 12 50 30\n");
        CHECK(shown(*nvml) == "0:11=20");
    }
    SECTION("the driver returns only newer samples")
    {
        answers.set(early);
        for (int i = 0; i < 16; i++)
            CHECK(shown(*nvml).empty());
        answers.set(early + "sample 11 200 20\n");
        CHECK(shown(*nvml) == "0:11=20");
    }
    SECTION("the driver is idle")
    {
        answers.set(late);
        for (int i = 0; i < 40; i++)
            CHECK(shown(*nvml).empty());
        answers.set(late + "sample 11 9001 20\n");
        CHECK(shown(*nvml) == "0:11=20");
    }
}
