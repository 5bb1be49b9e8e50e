// SPDX-License-Identifier: Apache-2.0
#include "run/sampling.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

// Returns the cost of the probes as a fraction of the total CPU time, if they are attached for the fraction `share` of
// the time. `always`: their cost if always attached, as a fraction of the process's own CPU time.
double cost_of(double always, double share)
{
    return always * share / (1 + always * share);
}

} // namespace

TEST_CASE("probes below the ceiling stay attached", "[duty_cycle]")
{
    DutyCycle cycle(0.05);
    cycle.add(0.04, 0, 1);
    CHECK(cycle.is_whole());
}

TEST_CASE("expensive probes are kept below the ceiling", "[duty_cycle]")
{
    for (const double always : {0.06, 0.3, 3.0, 40.0}) {
        DutyCycle cycle(0.05);
        for (int i = 0; i < 20; i++)
            cycle.add(cost_of(always, cycle.share()), 0, cycle.share());
        CHECK_FALSE(cycle.is_whole());
        const double cost = always * cycle.share();
        CHECK((cost > 0.035 && cost <= 0.05));
    }
}

TEST_CASE("the cost of probes that cannot be sampled counts against the ceiling", "[duty_cycle]")
{
    DutyCycle cycle(0.05);
    for (int i = 0; i < 20; i++)
        cycle.add(cost_of(0.3, cycle.share()), 0.02, cycle.share());
    CHECK(0.3 * cycle.share() <= 0.03);
    for (int i = 0; i < 20; i++)
        cycle.add(cost_of(0.3, cycle.share()), 0.2, cycle.share());
    CHECK(cycle.share() < 0.01);
}

TEST_CASE("probes that have become cheap are permanently attached again", "[duty_cycle]")
{
    DutyCycle cycle(0.05);
    for (int i = 0; i < 20; i++)
        cycle.add(cost_of(3, cycle.share()), 0, cycle.share());
    for (int i = 0; i < 20; i++)
        cycle.add(cost_of(0.001, cycle.share()), 0, cycle.share());
    CHECK(cycle.is_whole());
    cycle.add(0.5, 0, 1);
    for (int i = 0; i < 20; i++)
        cycle.add(0, 0, cycle.share()); // the process sleeps
    CHECK(cycle.is_whole());
}
