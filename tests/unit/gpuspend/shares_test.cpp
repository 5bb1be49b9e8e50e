// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/ledger.hpp"

#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>

using gpusnoop::divided;
using Parts = std::vector<uint64_t>;

TEST_CASE("parts add up to the amount", "[spend]")
{
    CHECK(divided(10, Parts{1, 1, 1}) == Parts{4, 3, 3});
    CHECK(divided(10, Parts{1, 2, 2}) == Parts{2, 4, 4});
    CHECK(divided(100, Parts{1, 0, 999}) == Parts{0, 0, 100});
    CHECK(divided(7, Parts{0, 0}) == Parts{4, 3}); // all weights are 0: equal parts
    CHECK(divided(0, Parts{3, 5}) == Parts{0, 0});
    CHECK(divided(5, Parts{}).empty());
    CHECK(divided(UINT64_MAX, Parts{UINT64_MAX, UINT64_MAX}) == Parts{UINT64_MAX / 2 + 1, UINT64_MAX / 2});
    std::mt19937_64 random(1);
    for (int i = 0; i < 1000; i++) {
        Parts weights(1 + random() % 20);
        for (uint64_t& weight : weights)
            weight = random() >> (random() % 64);
        const uint64_t amount = random() >> (random() % 64);
        const Parts parts = divided(amount, weights);
        REQUIRE(std::accumulate(parts.begin(), parts.end(), uint64_t{0}) == amount);
    }
}
