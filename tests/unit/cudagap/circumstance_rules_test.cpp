// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/rules.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>

using namespace gpusnoop;

// Cases set only the fields that matter.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace {

struct Case {
    std::string_view rule;
    std::string words;
    Circumstances around;                     // on a machine with 8 CPUs
    std::function<void(Circumstances&)> undo; // makes the rule no longer apply
};

Circumstances stalled(size_t pressure, double percent, std::optional<uint64_t> machine_wide = {})
{
    Circumstances around;
    around.stalled_percent.at(pressure) = percent;
    around.machine_wide = machine_wide;
    return around;
}

const Case cases[] = {
    {"quota",
     "its cgroup is limited to 0.2 CPUs: throttled 39 times, for 3.1 s (summed over CPUs) in 4.0 s",
     {.quota_cpus = 0.2, .throttles = 39, .throttled_ns = 3'120'000'000},
     [](auto& a) { a.throttled_ns = 100'000'000; }},
    {"CPU pressure", "CPU pressure in its cgroup: 45% (PSI some)", stalled(PRESSURE_CPU, 44.6),
     [](auto& a) { a.stalled_percent[PRESSURE_CPU] = 9; }},
    {"I/O pressure", "I/O pressure on the machine: 12% (PSI some)", stalled(PRESSURE_IO, 12, 1),
     [](auto& a) { a.stalled_percent[PRESSURE_IO] = {}; }},
    {"memory pressure", "memory pressure in its cgroup: 80% (PSI some)", stalled(PRESSURE_MEMORY, 80),
     [](auto& a) { a.stalled_percent[PRESSURE_MEMORY] = 0; }},
    {"affinity",
     "restricted to 1 of 8 CPUs, with 9 threads",
     {.threads = 9, .allowed_cpus = 1},
     [](auto& a) { a.allowed_cpus = 8; }},
    {"nodes",
     "its threads run on NUMA node 1, but the GPUs are on node 0, 2",
     {.nodes = {1}, .gpu_nodes = {0, 2}},
     [](auto& a) { a.nodes.insert(0); }},
    {"faults",
     "120 major page faults/s (reads from disk)",
     {.major_faults = 480},
     [](auto& a) { a.major_faults = 39; }},
    {"swap",
     "1.2 GiB of its memory is swapped out",
     {.swapped_bytes = 1'288'490'189},
     [](auto& a) { a.swapped_bytes = 4096; }},
};

} // namespace

TEST_CASE("each circumstance rule applies only above its threshold")
{
    Circumstances nothing{.covered_ns = 4'000'000'000, .cpus = 8};
    CHECK(circumstance_words(nothing).empty());
    CHECK(circumstance_words({}).empty());
    CHECK(circumstance_rules().size() == std::size(cases));
    for (Case of : cases) {
        INFO(of.rule);
        const auto rule = std::ranges::find(circumstance_rules(), of.rule, &CircumstanceRule::name);
        REQUIRE(rule != circumstance_rules().end());
        of.around.covered_ns = nothing.covered_ns;
        of.around.cpus = nothing.cpus;
        CHECK(rule->check(of.around) == of.words);
        CHECK(circumstance_words(of.around) == std::vector{of.words});
        of.undo(of.around);
        CHECK(!rule->check(of.around));
    }
}
