// SPDX-License-Identifier: Apache-2.0
#include "who/processes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;
using Pids = std::vector<pid_t>;

TEST_CASE("descendants are found in any order of fork events", "[who]")
{
    Descendants family(10);
    CHECK(family.on_fork(21, 20) == Pids());
    CHECK(family.on_fork(31, 30) == Pids());
    CHECK(family.on_fork(22, 21) == Pids());
    CHECK(family.on_fork(11, 10) == Pids{11});
    CHECK(family.on_fork(20, 11) == Pids{20, 21, 22});
    for (const pid_t pid : {10, 11, 20, 21, 22})
        CHECK(family.contains(pid));
    CHECK(!family.contains(31));
}

TEST_CASE("a reused pid belongs to its new parent", "[who]")
{
    Descendants family(10);
    family.on_fork(11, 10);
    family.remove(11);
    CHECK(!family.contains(11));
    CHECK(family.on_fork(12, 11) == Pids());
    family.drop_unmatched();
    CHECK(family.on_fork(11, 10) == Pids{11});
    CHECK(!family.contains(12));
}

TEST_CASE("a process matches once any of its threads had the name")
{
    NamedProcesses needles("needl");
    CHECK_FALSE(needles.on_rename(10, "hay"));
    CHECK(needles.on_rename(10, "a-needle"));
    CHECK_FALSE(needles.on_rename(10, "needle")); // already added
    CHECK_FALSE(needles.on_rename(10, "hay"));
    CHECK(needles.contains(10)); // still matches, so that frees of its allocations are traced
    CHECK_FALSE(needles.on_exec(10, "needle-2"));
    CHECK(needles.on_exec(10, "hay"));
    CHECK_FALSE(needles.on_exec(10, "hay"));
    CHECK(needles.pids().empty());
}

TEST_CASE("rescan() finds processes by the names of their threads")
{
    NamedProcesses mine("q\x01zq thread"), others("q\x01zq other");
    char before[16];
    ::prctl(PR_GET_NAME, before);
    std::thread([&] {
        ::prctl(PR_SET_NAME, "q\x01zq thread");
        mine.rescan();
        others.rescan();
    }).join();
    CHECK(mine.pids() == std::set<pid_t>{::getpid()});
    CHECK(others.pids().empty());
    CHECK_FALSE(others.on_fork(::getpid()));
    CHECK(NamedProcesses(before).on_fork(::getpid()));
}
