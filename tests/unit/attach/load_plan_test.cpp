// SPDX-License-Identifier: Apache-2.0
#include "attach/load_plan.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

const std::vector<Hook> hooks{{"wait", true, {0}, true}, {"state", true, {1}, true, "devices are unknown"}};

Refusal refused(const char* program)
{
    Refusal refusal;
    refusal.cause = RefusalCause::verifier;
    refusal.program = program;
    refusal.detail = program;
    return refusal;
}

std::vector<std::string> remaining(const LoadPlan& plan)
{
    std::vector<std::string> names;
    for (const Hook& hook : plan.hooks(hooks))
        names.push_back(hook.program);
    return names;
}

} // namespace

TEST_CASE("a refused program is retried in each tier")
{
    LoadPlan plan(Tier::session, false);
    CHECK(plan.tier() == Tier::session);
    CHECK(plan.remarks(hooks).empty());
    for (Tier next : {Tier::multi, Tier::tracefs, Tier::perf}) {
        REQUIRE(plan.step(refused("wait_session"), hooks));
        CHECK(plan.tier() == next);
        CHECK(remaining(plan) == std::vector<std::string>{"wait", "state"});
        CHECK(plan.remarks(hooks).size() == 1);
    }
    CHECK_FALSE(plan.step(refused("wait_entry"), hooks));
    CHECK(plan.cause().program == "wait_session"); // the reported cause is the refusal in the best tier
    CHECK_FALSE(LoadPlan(Tier::session, false).step(refused(""), hooks)); // a refusal that concerns no program
}

TEST_CASE("an optional program is left out, and the best tier is tried again")
{
    LoadPlan plan(Tier::tracefs, false);
    REQUIRE(plan.step(refused("state_entry"), hooks));
    CHECK(plan.tier() == Tier::perf);
    REQUIRE(plan.step(refused("state_return"), hooks));
    CHECK(plan.tier() == Tier::tracefs);
    CHECK(remaining(plan) == std::vector<std::string>{"wait"});
    CHECK(plan.leaves_out("state"));
    CHECK(plan.remarks(hooks) == std::vector<std::string>{"devices are unknown: the kernel refused the BPF program "
                                                          "state_entry: the verifier reports \"state_entry\""});
    REQUIRE(plan.step(refused("wait_entry"), hooks)); // tries tier perf for the remaining programs
    CHECK_FALSE(plan.step(refused("wait_entry"), hooks));
}

TEST_CASE("a forced tier is the only one tried")
{
    LoadPlan plan(Tier::multi, true);
    CHECK_FALSE(plan.step(refused("wait_entry"), hooks));
    CHECK(plan.cause().program == "wait_entry");
    LoadPlan without(Tier::multi, true);
    REQUIRE(without.step(refused("state_entry"), hooks));
    CHECK(without.tier() == Tier::multi);
    CHECK(remaining(without) == std::vector<std::string>{"wait"});
}

TEST_CASE("after an optional program on a kernel function is refused, loading is retried once without it")
{
    LoadPlan plan(Tier::session, false);
    REQUIRE(plan.step(refused("open_exit"), hooks));
    CHECK(plan.tier() == Tier::session);
    CHECK(plan.programs_left_out() == std::vector<std::string>{"open_exit"});
    CHECK(plan.remarks(hooks).size() == 1);
    CHECK_FALSE(plan.step(refused("open_exit"), hooks));
}

TEST_CASE("if a function's special program is refused, the general program handles the function, in the same tier")
{
    std::vector<Hook> launch_hooks(2);
    launch_hooks[0] = {.program = "launch", .probes = {1, 2}};
    launch_hooks[1] = {.program = "often", .probes = {0}, .without = "it takes longer", .instead_of = "launch"};
    LoadPlan plan(Tier::multi, false);
    CHECK(plan.hooks(launch_hooks).size() == 2);
    REQUIRE(plan.step(refused("often_entry"), launch_hooks));
    CHECK(plan.tier() == Tier::multi);
    const std::vector<Hook> remaining_hooks = plan.hooks(launch_hooks);
    REQUIRE(remaining_hooks.size() == 1);
    CHECK(remaining_hooks[0].probes == std::vector<unsigned>{1, 2, 0});
    CHECK(plan.remarks(launch_hooks) == std::vector<std::string>{"it takes longer: the kernel refused the BPF program "
                                                                 "often_entry: the verifier reports "
                                                                 "\"often_entry\""});
    REQUIRE(plan.step(refused("launch_entry"), launch_hooks)); // then the next tier is tried
    CHECK(plan.tier() == Tier::tracefs);
}
