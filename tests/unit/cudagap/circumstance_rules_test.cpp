// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/rules.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

using namespace gpusnoop;

namespace {

struct Case {
    void (*set)(Circumstances&);
    std::string words;
    void (*not_any_more)(Circumstances&);
};

const std::map<std::string_view, Case> cases = {
    {"quota",
     {[](Circumstances& a) {
          a.quota_cpus = 0.2;
          a.throttles = 39;
          a.throttled_ns = 3'120'000'000;
      },
      "its cgroup may use 0.2 CPUs: throttled 39 times, for 3.1 s (of all CPUs together) in 4.0 s",
      [](Circumstances& a) { a.throttled_ns = 100'000'000; }}},
    {"pressure of CPUs",
     {[](Circumstances& a) { a.stalled_percent[PRESSURE_CPU] = 44.6; },
      "some task of its cgroup waits for a CPU 45% of the time",
      [](Circumstances& a) { a.stalled_percent[PRESSURE_CPU] = 9; }}},
    {"pressure of disks",
     {[](Circumstances& a) {
          a.stalled_percent[PRESSURE_IO] = 12;
          a.of_machine = 1;
      },
      "some task of the machine waits for disks 12% of the time",
      [](Circumstances& a) { a.stalled_percent[PRESSURE_IO] = {}; }}},
    {"pressure of memory",
     {[](Circumstances& a) { a.stalled_percent[PRESSURE_MEMORY] = 80; },
      "some task of its cgroup waits for memory 80% of the time",
      [](Circumstances& a) { a.stalled_percent[PRESSURE_MEMORY] = 0; }}},
    {"affinity",
     {[](Circumstances& a) {
          a.allowed_cpus = 1;
          a.threads = 9;
      },
      "it may use 1 of 8 CPUs, with 9 threads", [](Circumstances& a) { a.allowed_cpus = 8; }}},
    {"nodes",
     {[](Circumstances& a) {
          a.nodes = {1};
          a.gpu_nodes = {0, 2};
      },
      "its threads are on NUMA node 1, and no GPU is: those are on 0, 2",
      [](Circumstances& a) {
          a.nodes = {0, 1};
      }}},
    {"faults",
     {[](Circumstances& a) { a.major_faults = 480; }, "120 page faults/s read from a disk",
      [](Circumstances& a) { a.major_faults = 39; }}},
    {"swap",
     {[](Circumstances& a) { a.swapped_bytes = 1'288'490'189; }, "1.2G of its memory is swapped out",
      [](Circumstances& a) { a.swapped_bytes = 4096; }}},
};

} // namespace

TEST_CASE("each rule speaks where it should, and nowhere else")
{
    Circumstances nothing;
    nothing.covered_ns = 4'000'000'000;
    nothing.cpus = 8;
    CHECK(circumstance_words(nothing).empty());
    CHECK(circumstance_words({}).empty());
    for (const CircumstanceRule& rule : circumstance_rules()) {
        INFO(rule.name);
        REQUIRE(cases.contains(rule.name));
        const Case& of = cases.at(rule.name);
        Circumstances around = nothing;
        of.set(around);
        CHECK(rule.look(around) == of.words);
        CHECK(circumstance_words(around) == std::vector{of.words});
        of.not_any_more(around);
        CHECK(!rule.look(around));
    }
    CHECK(circumstance_rules().size() == cases.size());
}
