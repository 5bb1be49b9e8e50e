// SPDX-License-Identifier: Apache-2.0
#include "run/sampling.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

// What probes that would always take `always` of the rest take of all, while they are there for this share of the time.
double counted_part(double always, double share)
{
    return always * share / (1 + always * share);
}

} // namespace

TEST_CASE("a process that costs little has its probes always", "[duty_cycle]")
{
    DutyCycle cycle(0.05);
    cycle.add(0.04, 0, 1);
    CHECK(cycle.is_whole());
}

TEST_CASE("one that costs much is held below the ceiling", "[duty_cycle]")
{
    for (const double always : {0.06, 0.3, 3.0, 40.0}) {
        DutyCycle cycle(0.05);
        for (int i = 0; i < 20; i++)
            cycle.add(counted_part(always, cycle.share()), 0, cycle.share());
        CHECK_FALSE(cycle.is_whole());
        const double cost = always * cycle.share();
        CHECK((cost > 0.035 && cost <= 0.05));
    }
}

TEST_CASE("what cannot be sampled counts, and may take all of it", "[duty_cycle]")
{
    DutyCycle cycle(0.05);
    for (int i = 0; i < 20; i++)
        cycle.add(counted_part(0.3, cycle.share()), 0.02, cycle.share());
    CHECK(0.3 * cycle.share() <= 0.03);
    for (int i = 0; i < 20; i++)
        cycle.add(counted_part(0.3, cycle.share()), 0.2, cycle.share());
    CHECK(cycle.share() < 0.01);
}

TEST_CASE("one that has become cheap has its probes always again", "[duty_cycle]")
{
    DutyCycle cycle(0.05);
    for (int i = 0; i < 20; i++)
        cycle.add(counted_part(3, cycle.share()), 0, cycle.share());
    for (int i = 0; i < 20; i++)
        cycle.add(counted_part(0.001, cycle.share()), 0, cycle.share());
    CHECK(cycle.is_whole());
    cycle.add(0.5, 0, 1);
    for (int i = 0; i < 20; i++)
        cycle.add(0, 0, cycle.share()); // it sleeps
    CHECK(cycle.is_whole());
}
