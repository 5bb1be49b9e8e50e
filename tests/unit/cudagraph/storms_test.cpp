// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagraph/graphs.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

constexpr uint64_t second = 1'000'000'000;
const ImageId process = image{100, 1};
const ImageId other = image{101, 1};

} // namespace

TEST_CASE("captures during the warm-up are not a storm")
{
    Storms storms(6, 60 * second);
    storms.add(process, {1, 10}, 50, 50, 1000 * second);
    storms.add(process, {1, 10}, 50, 50, 1059 * second);
    CHECK(storms.drain(1059 * second).empty());
    CHECK(storms.drain(1070 * second).empty());
}

TEST_CASE("a storm of captures is reported once a minute, with its main source")
{
    Storms storms(6, 60 * second);
    uint64_t now = 1000 * second;
    storms.add(process, {1, 10}, 1, 1, now);
    now += 60 * second;
    storms.add(process, {1, 10}, 2, 1, now);
    storms.add(process, {2, 20}, 4, 4, now + 1);
    CHECK(storms.drain(now + second).empty()); // six captures: not above the limit
    storms.add(process, {2, 20}, 1, 0, now + 2 * second);
    const auto found = storms.drain(now + 2 * second);
    REQUIRE(found.size() == 1);
    CHECK(found[0].image == process);
    CHECK(found[0].captures == 7);
    CHECK(found[0].instantiates == 5);
    CHECK(found[0].source == StormSource{2, 20});
    storms.add(process, {2, 20}, 1, 0, now + 3 * second);
    CHECK(storms.drain(now + 3 * second).empty()); // already reported
    // The storm ends after a minute without captures.
    CHECK(storms.drain(now + 64 * second).empty());
    storms.add(process, {2, 20}, 0, 7, now + 65 * second);
    CHECK(storms.drain(now + 65 * second).size() == 1);
}

TEST_CASE("each process has its own count")
{
    Storms storms(6, 0);
    storms.add(process, {1, 10}, 5, 0, second);
    storms.add(other, {1, 10}, 5, 0, second);
    CHECK(storms.drain(second).empty());
    storms.add(other, {1, 10}, 5, 0, second);
    CHECK(storms.drain(second).size() == 1);
    storms.forget({other});
    storms.add(other, {1, 10}, 5, 0, 2 * second);
    CHECK(storms.drain(2 * second).empty());
}
