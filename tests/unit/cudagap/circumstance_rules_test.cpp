// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/rules.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

using namespace gpusnoop;

namespace {

struct Case {
    void (*set)(Circumstances&);
    std::string words;
    void (*undo)(Circumstances&); // makes the rule no longer apply
};

const std::map<std::string_view, Case> cases = {
    {"quota",
     {[](Circumstances& a) {
          a.quota_cpus = 0.2;
          a.throttles = 39;
          a.throttled_ns = 3'120'000'000;
      },
      "its cgroup is limited to 0.2 CPUs: throttled 39 times, for 3.1 s (summed over CPUs) in 4.0 s",
      [](Circumstances& a) { a.throttled_ns = 100'000'000; }}},
    {"CPU pressure",
     {[](Circumstances& a) { a.stalled_percent[PRESSURE_CPU] = 44.6; }, "CPU pressure in its cgroup: 45% (PSI some)",
      [](Circumstances& a) { a.stalled_percent[PRESSURE_CPU] = 9; }}},
    {"I/O pressure",
     {[](Circumstances& a) {
          a.stalled_percent[PRESSURE_IO] = 12;
          a.machine_wide = 1;
      },
      "I/O pressure on the machine: 12% (PSI some)", [](Circumstances& a) { a.stalled_percent[PRESSURE_IO] = {}; }}},
    {"memory pressure",
     {[](Circumstances& a) { a.stalled_percent[PRESSURE_MEMORY] = 80; },
      "memory pressure in its cgroup: 80% (PSI some)",
      [](Circumstances& a) { a.stalled_percent[PRESSURE_MEMORY] = 0; }}},
    {"affinity",
     {[](Circumstances& a) {
          a.allowed_cpus = 1;
          a.threads = 9;
      },
      "restricted to 1 of 8 CPUs, with 9 threads", [](Circumstances& a) { a.allowed_cpus = 8; }}},
    {"nodes",
     {[](Circumstances& a) {
          a.nodes = {1};
          a.gpu_nodes = {0, 2};
      },
      "its threads run on NUMA node 1, but the GPUs are on node 0, 2",
      [](Circumstances& a) {
          a.nodes = {0, 1};
      }}},
    {"faults",
     {[](Circumstances& a) { a.major_faults = 480; }, "120 major page faults/s (reads from disk)",
      [](Circumstances& a) { a.major_faults = 39; }}},
    {"swap",
     {[](Circumstances& a) { a.swapped_bytes = 1'288'490'189; }, "1.2 GiB of its memory is swapped out",
      [](Circumstances& a) { a.swapped_bytes = 4096; }}},
};

} // namespace

TEST_CASE("each circumstance rule applies only above its threshold")
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
        CHECK(rule.check(around) == of.words);
        CHECK(circumstance_words(around) == std::vector{of.words});
        of.undo(around);
        CHECK(!rule.check(around));
    }
    CHECK(circumstance_rules().size() == cases.size());
}
