// SPDX-License-Identifier: Apache-2.0
#include "rows/call_sample.hpp"

#include "bpf/shared/probe.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

CallDelta copies(uint64_t count, uint32_t pid = 1)
{
    CallDelta delta;
    delta.key.image.pid = pid;
    delta.key.kind = KIND_COPY;
    delta[CALL_COUNT] = count;
    delta[COPY_BYTES] = count * 10;
    delta[COPY_CONTINUED] = static_cast<uint64_t>(-1);
    return delta;
}

} // namespace

TEST_CASE("calls counted in sampling windows are scaled to the process's total CPU time", "[call_sample]")
{
    CallSample sample(1000);
    CHECK(sample.drain(2000).empty()); // no window yet
    for (uint64_t at = 3000; at < 11000; at += 2000) {
        sample.open(at);
        sample.add(copies(5));
        sample.close(at + 500, 50);
    }
    const std::vector<CallDelta> all = sample.drain(11000); // the windows cover 2,000 of 10,000 ns of CPU time
    REQUIRE(all.size() == 1);
    CHECK(all[0][CALL_COUNT] == 100);
    CHECK(all[0][COPY_BYTES] == 1000);
    CHECK(static_cast<int64_t>(all[0][COPY_CONTINUED]) == -20); // -1 in each of four windows, scaled by five
    CHECK(sample.accuracy().percent == Catch::Approx(20));
    REQUIRE(sample.accuracy().error);
    CHECK(*sample.accuracy().error == Catch::Approx(3.5)); // equal rates: only the probe cost adds an error
    CHECK(sample.drain(12000).empty());
}

TEST_CASE("different rates in the windows increase the error", "[call_sample]")
{
    CallSample sample(0);
    for (uint64_t i = 0; i < 8; i++) {
        sample.open(i * 1000);
        sample.add(copies(i % 2 ? 10 : 30));
        sample.close(i * 1000 + 100, 0);
    }
    CHECK(sample.drain(8000).at(0)[CALL_COUNT] == 1600);
    CHECK(*sample.accuracy().error > 20);
}

TEST_CASE("each row is scaled separately, and an empty window changes nothing", "[call_sample]")
{
    CallSample sample(0);
    sample.open(0);
    sample.close(0, 0);
    sample.open(10);
    sample.add(copies(1, 7));
    sample.add(copies(2, 8));
    sample.add(copies(2, 8));
    sample.close(20, 0);
    const std::vector<CallDelta> all = sample.drain(20);
    REQUIRE(all.size() == 2);
    CHECK(all[0][CALL_COUNT] + all[1][CALL_COUNT] == 10);
    CHECK_FALSE(sample.accuracy().error); // too few windows
}

TEST_CASE("drain_last returns the calls of a window in which the process used no CPU time", "[call_sample]")
{
    CallSample sample(0);
    sample.open(100);
    sample.add(copies(3));
    sample.close(100, 0); // the process has exited, so its CPU clock can no longer be read
    CHECK(sample.drain(100).empty());
    CHECK(sample.drain_last(100).at(0)[CALL_COUNT] == 3);
    CHECK(sample.drain_last(100).empty());
}
