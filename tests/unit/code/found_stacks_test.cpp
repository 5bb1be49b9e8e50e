// SPDX-License-Identifier: Apache-2.0
#include "code/pending_calls.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

TEST_CASE("each unwound stack gets its own id")
{
    UnwoundStacks stacks;
    const std::vector<uint64_t> one{0x1000, 0x2000}, other{0x1000};
    const int32_t number = stacks.number_of(one);
    CHECK(UnwoundStacks::is(number));
    CHECK(stacks.number_of(other) != number);
    CHECK(stacks.number_of(one) == number);
    CHECK(std::ranges::equal(stacks.of(number), one));
    CHECK(std::ranges::equal(stacks.of(stacks.number_of(other)), other));
    CHECK(stacks.number_of({}) < 0);
    CHECK_FALSE(UnwoundStacks::is(0x1fffff)); // an id that the BPF programs assign
    CHECK(stacks.of(17).empty());
    CHECK(stacks.of(number + 2).empty());
}

TEST_CASE("stacks beyond the limit get no id")
{
    UnwoundStacks stacks;
    int32_t last = 0;
    for (uint64_t address = 1; last >= 0 && address < 10'000; address++)
        last = stacks.number_of({address});
    CHECK(last < 0);
    CHECK(stacks.number_of({1}) >= 0);
}
