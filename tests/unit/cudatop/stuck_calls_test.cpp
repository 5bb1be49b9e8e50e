// SPDX-License-Identifier: Apache-2.0
// Detection of stuck calls from a series of inspections.
#include "tools/cudatop/stuck_calls.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

constexpr uint64_t second = 1'000'000'000, begin = 1000 * second;
constexpr pid_t pid = 77;
constexpr uint32_t tid = 78;
constexpr uint32_t launch = 1, synchronize = 2, load = 3; // numbers of functions

// A process with one thread. `at` is a time in seconds after `begin`.
struct Fixture {
    StuckThreads threads{{{.is_counted = true}, {.is_wait = true}, {}}};

    // Inspects the thread. Returns true if its stack is searched, in which case the search finds a call of function
    // `call` (0: no call).
    bool inspect(uint64_t at, uint64_t registers, uint32_t call, uint64_t caller = 5)
    {
        const uint64_t now = begin + at * second;
        if (threads.due({pid}, now).empty())
            return false;
        const PendingCallsQuestion::Thread thread{.tid = tid, .ip = registers};
        threads.inspected(pid, std::span(&thread, 1), now);
        const PendingCallsQuestion question = threads.question(pid, now);
        if (question.threads.empty())
            return false;
        PendingCall answer;
        if (call)
            answer = {.probe = call, .stack = 9, .callers = {caller}};
        threads.answered(pid, std::span(&tid, 1), std::span(&answer, 1));
        return true;
    }
    void call(uint64_t at) { threads.called(pid, tid, begin + at * second); }
    bool is_stuck() const { return !threads.stuck().empty(); }
};

} // namespace

TEST_CASE("the stack of a thread whose registers do not change is searched once; after two seconds the thread is stuck",
          "[stuck]")
{
    Fixture f;
    CHECK(f.inspect(0, 1, launch));
    CHECK_FALSE(f.inspect(1, 1, launch));
    CHECK_FALSE(f.is_stuck());
    CHECK_FALSE(f.inspect(2, 1, launch));
    REQUIRE(f.is_stuck());
    CHECK(f.threads.stuck().front().tid == tid);
    CHECK(f.threads.stuck().front().since_ns == begin);
    CHECK(f.threads.stuck().front().call->probe == launch);
    CHECK_FALSE(f.inspect(3, 1, launch));
    CHECK(f.is_stuck());
    f.call(3); // it has returned
    CHECK_FALSE(f.is_stuck());
}

TEST_CASE("a thread that moves within a counted function is stuck if no call is counted", "[stuck]")
{
    Fixture f;
    f.inspect(0, 1, launch);
    SECTION("after earlier calls")
    {
        f.call(0);
        for (uint64_t at = 1; at < 5; at++) {
            CHECK(f.inspect(at, 10 + at, launch));
            CHECK(f.is_stuck() == (at >= 3));
        }
        f.inspect(5, 20, launch, 6); // called from elsewhere
        CHECK_FALSE(f.is_stuck());
    }
    SECTION("not if it keeps making calls")
    {
        for (uint64_t at = 1; at < 9; at++) {
            f.call(at);
            f.inspect(at, 10 + at, launch);
            CHECK_FALSE(f.is_stuck());
        }
    }
    SECTION("not in a function whose calls are never counted")
    {
        f.call(0);
        for (uint64_t at = 1; at < 9; at++)
            f.inspect(at, 10 + at, load);
        CHECK_FALSE(f.is_stuck());
    }
    SECTION("without earlier calls")
    {
        for (uint64_t at = 1; at < 5; at++) {
            CHECK(f.inspect(at, 10 + at, launch));
            CHECK(f.is_stuck() == (at >= 2));
        }
    }
}

TEST_CASE("threads in a wait or in no call are not stuck, and are inspected less and less often", "[stuck]")
{
    Fixture f;
    SECTION("a wait")
    {
        for (uint64_t at = 0; at < 9; at++)
            f.inspect(at, 1, synchronize);
        CHECK_FALSE(f.is_stuck());
    }
    SECTION("no call, in a thread that is always running")
    {
        unsigned searches = 0;
        for (uint64_t at = 0; at < 60; at++)
            searches += f.inspect(at, 10 + at, 0);
        CHECK(searches == 3);
    }
    SECTION("no call, in a thread that sleeps")
    {
        unsigned inspections = 0;
        for (uint64_t at = 0; at < 60; at++) {
            inspections += !f.threads.due({pid}, begin + at * second).empty();
            f.inspect(at, 1, 0);
        }
        CHECK(inspections < 10);
        f.call(60);
        CHECK_FALSE(f.threads.due({pid}, begin + 60 * second).empty());
    }
}

TEST_CASE("a call of an uncounted function is stuck if the thread does not move", "[stuck]")
{
    Fixture f;
    for (uint64_t at = 0; at < 4; at++)
        f.inspect(at, 1, load);
    CHECK(f.is_stuck());
    f.inspect(4, 2, 0);
    f.inspect(5, 2, 0);
    CHECK_FALSE(f.is_stuck());
}
