// SPDX-License-Identifier: Apache-2.0
#include "who/processes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;

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
