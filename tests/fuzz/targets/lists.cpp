// SPDX-License-Identifier: Apache-2.0
// Price lists and team lists of gpuspend.
#include "base/error.hpp"
#include "tests/fuzz/target.hpp"
#include "tools/gpuspend/prices.hpp"
#include "tools/gpuspend/teams.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    try {
        const Prices prices(input, "f", "node");
        expect(prices.currency().size() == 3, "prices have a currency");
        for (const char* model : {"", "NVIDIA H100 80GB HBM3", "*"})
            expect(prices.of(model, 0).value_or(0) < 1'000'000 * micros_per_unit, "prices are bounded");
    } catch (const Error&) {}
    try {
        const Teams teams(input, "f");
        expect(teams.any(), "there is at least one team");
        Owner owner;
        owner.names.pod_namespace = owner.names.pod = "a";
        (void)teams.of(owner, "root");
    } catch (const Error&) {}
}
