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

std::vector<std::string> left(const LoadPlan& plan)
{
    std::vector<std::string> names;
    for (const Hook& hook : plan.hooks(hooks))
        names.push_back(hook.program);
    return names;
}

} // namespace

TEST_CASE("a refused program is tried in each way of attaching")
{
    LoadPlan plan(Tier::session, false);
    CHECK(plan.tier() == Tier::session);
    CHECK(plan.remarks(hooks).empty());
    for (Tier next : {Tier::multi, Tier::tracefs, Tier::perf}) {
        REQUIRE(plan.step(refused("wait_session"), hooks));
        CHECK(plan.tier() == next);
        CHECK(left(plan) == std::vector<std::string>{"wait", "state"});
        CHECK(plan.remarks(hooks).size() == 1);
    }
    CHECK_FALSE(plan.step(refused("wait_entry"), hooks));
    CHECK(plan.cause().program == "wait_session"); // in the best way
}

TEST_CASE("what a tool can do without is left out, and the best way tried again")
{
    LoadPlan plan(Tier::tracefs, false);
    REQUIRE(plan.step(refused("state_entry"), hooks));
    CHECK(plan.tier() == Tier::perf);
    REQUIRE(plan.step(refused("state_return"), hooks));
    CHECK(plan.tier() == Tier::tracefs);
    CHECK(left(plan) == std::vector<std::string>{"wait"});
    CHECK(plan.leaves_out("state"));
    CHECK(plan.remarks(hooks) == std::vector<std::string>{"devices are unknown: the kernel refused the BPF program "
                                                          "state_entry: the verifier reports \"state_entry\""});
    REQUIRE(plan.step(refused("wait_entry"), hooks)); // perf, for what is left
    CHECK_FALSE(plan.step(refused("wait_entry"), hooks));
}

TEST_CASE("a way that was asked for is the only one")
{
    LoadPlan plan(Tier::multi, true);
    CHECK_FALSE(plan.step(refused("wait_entry"), hooks));
    CHECK(plan.cause().program == "wait_entry");
    LoadPlan without(Tier::multi, true);
    REQUIRE(without.step(refused("state_entry"), hooks));
    CHECK(without.tier() == Tier::multi);
    CHECK(left(without) == std::vector<std::string>{"wait"});
}

TEST_CASE("no other program helps where it is not a program's fault")
{
    LoadPlan plan(Tier::session, false);
    CHECK_FALSE(plan.step(refused(""), hooks));
}

TEST_CASE("programs on functions of the kernel are left out once")
{
    LoadPlan plan(Tier::session, false);
    REQUIRE(plan.step(refused("open_exit"), hooks));
    CHECK(plan.tier() == Tier::session);
    CHECK(plan.programs_left_out() == std::vector<std::string>{"open_exit"});
    CHECK(plan.remarks(hooks).size() == 1);
    CHECK_FALSE(plan.step(refused("open_exit"), hooks));
}

TEST_CASE("a refused program for one function leaves that to the one for all, in the same way of attaching")
{
    std::vector<Hook> of_launches(2);
    of_launches[0] = {.program = "launch", .probes = {1, 2}};
    of_launches[1] = {.program = "often", .probes = {0}, .without = "it takes longer", .instead_of = "launch"};
    LoadPlan plan(Tier::multi, false);
    CHECK(plan.hooks(of_launches).size() == 2);
    REQUIRE(plan.step(refused("often_entry"), of_launches));
    CHECK(plan.tier() == Tier::multi);
    const std::vector<Hook> left = plan.hooks(of_launches);
    REQUIRE(left.size() == 1);
    CHECK(left[0].probes == std::vector<unsigned>{1, 2, 0});
    CHECK(plan.remarks(of_launches) == std::vector<std::string>{"it takes longer: the kernel refused the BPF program "
                                                                "often_entry: the verifier reports "
                                                                "\"often_entry\""});
    REQUIRE(plan.step(refused("launch_entry"), of_launches)); // the next way
    CHECK(plan.tier() == Tier::tracefs);
}
