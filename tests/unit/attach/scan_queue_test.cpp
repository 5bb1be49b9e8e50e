// SPDX-License-Identifier: Apache-2.0
#include "attach/scan_queue.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;
using namespace std::chrono_literals;

TEST_CASE("a process that is added several times is scanned once", "[scan_queue]")
{
    ScanQueue queue;
    const ScanQueue::Clock::time_point now{1h};
    for (int i = 0; i < 50; i++) {
        queue.add(7, now);
        queue.add(8, now);
    }
    CHECK(queue.next(now) == 7);
    queue.scanned(7, 1ms, now);
    CHECK(queue.next(now) == 8);
    CHECK(queue.next(now) == std::nullopt);
}

TEST_CASE("a process that loads many libraries is scanned without delay", "[scan_queue]")
{
    ScanQueue queue;
    ScanQueue::Clock::time_point now{1h};
    for (int library = 0; library < 100; library++) {
        queue.add(7, now);
        REQUIRE(queue.next(now) == 7);
        now += 5ms;
        queue.scanned(7, 5ms, now);
    }
}

TEST_CASE("after a burst, scans of a process get 5% of elapsed time, and other processes do not wait", "[scan_queue]")
{
    ScanQueue queue;
    ScanQueue::Clock::time_point now{1h};
    const auto begin = now;
    ScanQueue::Clock::duration taken{};
    while (now < begin + 100s) {
        queue.add(7, now);
        queue.add(8, now);
        bool other = false;
        while (const auto pid = queue.next(now)) {
            if (*pid == 8) {
                other = true;
                continue;
            }
            now += 100ms;
            queue.scanned(7, 100ms, now);
            taken += 100ms;
        }
        REQUIRE(other);
        now += 10ms;
    }
    CHECK(taken >= 5s);
    CHECK(taken <= 6s); // a burst of 500 ms, and 5% of 100 s

    // After a pause, the process has its burst again.
    now += 20s;
    queue.add(7, now);
    CHECK(queue.next(now) == 7);
}
