// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_service.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace gpusnoop;

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" // unknown values

namespace {

NvmlAnswers everything()
{
    NvmlAnswers all;
    all.processes = {{7, 0, 100, 1, 2}, {8, 1, std::nullopt, std::nullopt, std::nullopt}};
    all.failures = {{1, "GPU is lost (error 15)"}};
    all.use = {{7, 0, 12.5}, {8, 1, {}, 25, 0.5}};
    all.states = {
        {.index = 0,
         .minor = 3,
         .name = "Card",
         .pci = "0000:3b:00.0",
         .uuid = "GPU-1",
         .utilization = 71,
         .memory_used = 3,
         .memory_total = 4,
         .power_watts = 250.5,
         .mig = false,
         .efficiency = {.sm_active = 61.5, .tensor_active = 0},
         .slices = 7,
         .instances = {{.gpu_instance = 2, .parts = {{0, "MIG-a", 1}, {4, "MIG-b", 2}}, .name = "M", .slices = 3}}},
        {.index = 1, .mig = true, .vendor = GpuVendor::amd}};
    return all;
}

} // namespace

TEST_CASE("NVML's answers are transferred unchanged", "[nvml]")
{
    const auto got = answers_from(to_bytes(everything()));
    REQUIRE(got);
    CHECK(got->why.empty());
    REQUIRE(got->processes.size() == 2);
    CHECK(got->processes[0].pid == 7);
    CHECK(got->processes[0].bytes == 100);
    CHECK(got->processes[0].compute_instance == 2);
    CHECK(!got->processes[1].bytes);
    REQUIRE(got->failures.size() == 1);
    CHECK(got->failures[0].why == "GPU is lost (error 15)");
    CHECK(got->use.at(0).sm_percent == 12.5);
    CHECK(!got->use.at(0).cu_percent);
    CHECK(got->use.at(1).sdma_percent == 0.5);
    CHECK(got->states.at(1).vendor == GpuVendor::amd);
    REQUIRE(got->states.size() == 2);
    CHECK(got->states[0].name == "Card");
    CHECK(got->states[0].minor == 3);
    CHECK(got->states[0].power_watts == 250.5);
    CHECK(got->states[0].mig == false);
    CHECK(got->states[1].mig == true);
    CHECK(!got->states[1].utilization);
    CHECK(got->states[0].efficiency.sm_active == 61.5);
    CHECK(!got->states[0].efficiency.dram_active);
    REQUIRE(got->states[0].instances.size() == 1);
    CHECK(got->states[0].instances[0].parts == std::vector<NvmlComputeInstance>{{0, "MIG-a", 1}, {4, "MIG-b", 2}});
    CHECK(to_bytes(*got) == to_bytes(everything()));
}

TEST_CASE("truncated and foreign messages are rejected", "[nvml]")
{
    const std::string whole = to_bytes(everything());
    for (size_t size = 0; size < whole.size(); size++)
        CHECK(!answers_from(std::string_view(whole).substr(0, size)));
    CHECK(!answers_from(whole + "x"));
    std::mt19937 random(1);
    for (int turn = 0; turn < 5000; turn++) {
        std::string spoilt = whole;
        spoilt[random() % spoilt.size()] = static_cast<char>(random());
        (void)answers_from(spoilt);
    }
}
