// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_figures.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "tests/unit/gpu/nvml_standin.hpp"

#include <csignal>
#include <sys/wait.h>

using namespace gpusnoop;
using namespace gpusnoop::nvml_standin;

namespace {

constexpr uint64_t second = 1'000'000'000;

std::set<ImageId> images(std::initializer_list<uint32_t> pids)
{
    std::set<ImageId> set;
    for (uint32_t pid : pids)
        set.insert(image{pid, 1});
    return set;
}

// Kills the helper, which is the only child process.
void kill_helper()
{
    std::ifstream children("/proc/thread-self/children");
    pid_t helper = 0;
    REQUIRE(children >> helper);
    REQUIRE(kill(helper, SIGKILL) == 0);
    siginfo_t end{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(helper), &end, WEXITED | WNOWAIT) == 0);
}

const std::string begin = "device 0\ndevice 1\n";
const std::string state = "device 0\nname A\nutilization 50\n"
                          "process 11 100 gi=7 ci=0\nprocess 12 200 gi=7 ci=0\nprocess 13 unknown gi=2 ci=1\n"
                          "process 14 5\nprocess 15 6 gi=9\nsample 11 1000 30\nsample 12 1000 40\n"
                          "device 1\nname B\nprocess 12 1000\nprocess 16 7 gi=7 ci=0\nsample 12 1000 90\n";

} // namespace

TEST_CASE("NVML's values for the processes of a row", "[nvml]")
{
    const Answers answers(begin);
    NvmlFigures figures(standin());
    CHECK(figures.available());
    CHECK(figures.why().empty());
    CHECK(figures.states().empty());
    CHECK(!figures.memory_of(images({11})));
    answers.set(state);
    figures.refresh();

    REQUIRE(figures.states().size() == 2);
    CHECK(figures.states()[0].utilization == 50);
    CHECK(figures.states()[1].name == "B");

    CHECK(figures.memory_of(images({11})) == 100);
    CHECK(figures.memory_of(images({12})) == 1200);
    CHECK(figures.memory_of(images({11, 12, 99})) == 1300);
    CHECK(!figures.memory_of(images({11, 13})));
    CHECK(!figures.memory_of(images({99})));
    std::set<ImageId> twice = images({11}); // a process that has called exec
    twice.insert(image{11, 2});
    CHECK(figures.memory_of(twice) == 100);

    CHECK(figures.sm_percent_of(images({11})) == 30);
    CHECK(figures.sm_percent_of(images({12})) == 130);
    CHECK(figures.sm_percent_of(images({11, 12, 13})) == 160);
    CHECK(figures.sm_percent_of(twice) == 30);
    CHECK(!figures.sm_percent_of(images({13})));
    CHECK(!figures.sm_percent_of({}));

    CHECK(figures.instance_of(images({11})) == "gi 7 ci 0");
    CHECK(figures.instance_of(images({15})) == "gi 9");
    CHECK(!figures.instance_of(images({11, 13}))); // several instances
    CHECK(!figures.instance_of(images({11, 16}))); // on two devices
    CHECK(!figures.instance_of(images({12})));     // on a device without MIG
    CHECK(!figures.instance_of(images({14})));
    CHECK(!figures.instance_of(images({99})));

    CHECK(figures.memory_of(images({12}), 1) == 1000); // only on device 1
    CHECK(!figures.memory_of(images({11}), 1));
    CHECK(figures.sm_percent_of(images({12}), 0) == 40);
    CHECK(figures.processes().count(12) == 2);
}

TEST_CASE("NVML is queried at most once per interval", "[nvml]")
{
    const Answers answers("device 0\n");
    const auto with = [](unsigned time, unsigned percent) {
        return "device 0\nutilization " + std::to_string(percent) + "\nprocess 11 " + std::to_string(percent) +
               "\nsample 11 " + std::to_string(time) + " " + std::to_string(percent) + "\n";
    };
    NvmlFigures figures(standin());
    uint64_t now = 500 * second;
    const auto shows = [&](unsigned percent) {
        CHECK(figures.memory_of(images({11})) == percent);
        CHECK(figures.sm_percent_of(images({11})) == percent);
        CHECK(figures.states().at(0).utilization == percent);
    };
    const struct {
        unsigned percent;  // NVML's value
        uint64_t after_ns; // when it is queried
        unsigned shown;
    } steps[] = {
        {10, 0, 10},
        {20, 0, 10},
        {20, second / 2, 10},
        {20, second * 9 / 10, 10},
        {20, second - second / 25, 20},          // accepts a timer that fires slightly early
        {30, 2 * second - second * 7 / 100, 20}, // too early: repeated early timers do not increase the rate
        {30, 2 * second, 30},
        {40, 100 * second, 40},
        {50, 100 * second + second / 2, 40}, // after missed intervals, there are no extra queries
    };
    for (const auto& step : steps) {
        answers.set(with(100 * step.percent, step.percent));
        figures.refresh(now + step.after_ns);
        shows(step.shown);
    }
    answers.set("device 0\n");
    figures.refresh(now + 101 * second);
    CHECK(!figures.memory_of(images({11})));
    CHECK(!figures.sm_percent_of(images({11})));
    CHECK(!figures.states().at(0).utilization);
}

TEST_CASE("a helper that dies is replaced within a second, or within a minute after three deaths in a row", "[nvml]")
{
    std::vector<std::string> warnings;
    const WarningRedirect to([&](std::string message) { warnings.push_back(std::move(message)); });
    const Answers answers("device 0\nprocess 11 100\n");
    NvmlFigures figures(standin(), {.devices = true, .interval_ns = second / 10});
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    const auto has_figures_after = [&](uint64_t ns) {
        figures.refresh(now += ns);
        return figures.memory_of(images({11})) == 100;
    };
    const std::string died = "the NVML helper has died; NVML figures are missing until a new helper answers";
    const std::string in_a_row =
        "the NVML helper has died 3 times in a row: it is now restarted once a minute, and NVML figures are missing in "
        "between; check dmesg for the cause (out of memory, a crash of the library), or disable NVML with --nvml off";
    REQUIRE(has_figures_after(second));
    kill_helper();
    CHECK(has_figures_after(second));
    CHECK(warnings == std::vector{died});
    kill_helper();
    CHECK(!has_figures_after(second / 2));
    CHECK(!has_figures_after(second / 4));
    CHECK(has_figures_after(second / 2));
    CHECK(warnings == std::vector{died, died});
    kill_helper();
    CHECK(!has_figures_after(2 * second));
    CHECK(!has_figures_after(55 * second));
    CHECK(has_figures_after(5 * second));
    kill_helper();
    CHECK(!has_figures_after(2 * second));
    CHECK(warnings == std::vector{died, died, in_a_row});
    CHECK(has_figures_after(60 * second));
    CHECK(has_figures_after(60 * second)); // the helper survives
    kill_helper();
    CHECK(has_figures_after(second));
    CHECK(warnings == std::vector{died, died, in_a_row, died});
}

TEST_CASE("a helper that dies before its first answer is replaced", "[nvml]")
{
    std::vector<std::string> warnings;
    const WarningRedirect to([&](std::string message) { warnings.push_back(std::move(message)); });
    const Answers answers("hang\n");
    NvmlFigures figures(standin());
    CHECK(figures.available());
    answers.set("device 0\nprocess 11 100\n");
    kill_helper();
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    figures.refresh(now + second);
    CHECK(figures.memory_of(images({11})) == 100);
    CHECK(warnings.size() == 2); // one about the missing answer, one about the death
}

TEST_CASE("without device queries, only memory of processes is known", "[nvml]")
{
    const Answers answers("device 0\n");
    NvmlFigures figures(standin(), {.devices = false, .interval_ns = 0});
    answers.set("device 0\nutilization 50\nprocess 11 100\nsample 11 1000 30\n");
    figures.refresh(second);
    CHECK(figures.memory_of(images({11})) == 100);
    CHECK(figures.states().empty());
    CHECK(!figures.sm_percent_of(images({11})));
    answers.set("device 0\nprocess 11 7\n");
    figures.refresh(second);
    CHECK(figures.memory_of(images({11})) == 7);
}

TEST_CASE("reasons why NVML's values are not available", "[nvml]")
{
    NvmlFigures off("off");
    CHECK(!off.available());
    CHECK(off.why() == "NVML is disabled (--nvml off)");
    off.refresh();
    CHECK(off.states().empty());
    CHECK(!off.memory_of(images({11})));
    CHECK(!off.sm_percent_of(images({11})));
    CHECK(!off.instance_of(images({11})));
    CHECK(off.processes().empty());
    CHECK_THROWS_AS(NvmlFigures("/nonexistent/libnvidia-ml.so.1"), Error);
}
