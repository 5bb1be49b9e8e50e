// SPDX-License-Identifier: Apache-2.0
#include "attach/programs.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

std::vector<std::string> symbols(const ProbePlan& plan, const Hook& hook)
{
    std::vector<std::string> names;
    for (const unsigned probe : hook.probes)
        names.push_back(plan.probes[probe].symbol);
    return names;
}

} // namespace

TEST_CASE("a function has one program: its special program if there is one, otherwise the general one")
{
    const std::array programs{
        Program{.name = "launch", .layers = Layers::driver, .calls = launch_calls},
        Program{.name = "often", .layers = Layers::driver, .calls = often_launched, .instead_of = "launch"}};
    const ProbePlan plan = plan_probes(programs);
    REQUIRE(plan.hooks.size() == 2);
    const std::vector<std::string> all = symbols(plan, plan.hooks[0]), often = symbols(plan, plan.hooks[1]);
    CHECK(often == std::vector<std::string>{"cuLaunchKernel"});
    CHECK(std::ranges::find(all, "cuLaunchKernel") == all.end());
    CHECK(std::ranges::find(all, "cuLaunchKernel_ptsz") != all.end());
    CHECK(std::ranges::find(all, "cuLaunchKernelEx") != all.end());
    const uint32_t number = row_number(plan.probes, often_launched);
    REQUIRE(number != 0);
    CHECK(plan.probes[number - 1].symbol == "cuLaunchKernel");
    CHECK(row_number({}, often_launched) == 0);
}
