// SPDX-License-Identifier: Apache-2.0
#include "run/report_notes.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;
using namespace std::chrono_literals;

namespace {

template<class Set>
Options given(Set set)
{
    Options options;
    set(options);
    return options;
}

Options given_pids(std::vector<pid_t> pids)
{
    return given([&](Options& o) { o.pids = std::move(pids); });
}

} // namespace

TEST_CASE("an empty report states how many processes map CUDA")
{
    const Options all;
    CHECK(sentence({.noun = "launch", .length = 5003ms, .users = 7}, all) ==
          "no launch in 5 s; 7 processes map CUDA; -v lists them");
    CHECK(sentence({.noun = "launch", .length = 2549ms, .users = 1}, all) ==
          "no launch in 2.5 s; 1 process maps CUDA; -v names it");
    CHECK(sentence({.noun = "failed copy", .length = 250ms, .users = 0}, all) ==
          "no failed copy in 250 ms; no process maps CUDA");
    CHECK(sentence({.noun = "wait", .length = 2s, .users = 0, .unreadable_files = 1}, all) ==
          "no wait in 2 s; a CUDA library cannot be read (see the warning)");
    CHECK(sentence({.noun = "wait", .length = 2s, .users = 0, .unreadable_files = 2}, all) ==
          "no wait in 2 s; 2 CUDA libraries cannot be read (see the warnings)");
    CHECK(sentence({.noun = "wait", .length = 89600ms, .users = 0, .some_unreadable = true}, all) ==
          "no wait in 90 s; none of the readable processes maps CUDA");
    CHECK(sentence({.noun = "wait", .length = 1s, .users = 2}, given([](Options& o) { o.verbosity = 1; })) ==
          "no wait in 1 s; 2 processes map CUDA");
}

TEST_CASE("an empty report names the filter")
{
    const auto launches = [](const Options& options, EmptyReport report) {
        report.noun = "launch";
        report.length = 5s;
        return sentence(report, options);
    };
    CHECK(launches(given_pids({1234}), {.users = 1}) == "no launch by process 1234 in 5 s");
    CHECK(launches(given_pids({1234}), {.users = 0}) == "no launch by process 1234 in 5 s; it maps no CUDA driver");
    CHECK(launches(given_pids({1234}), {.users = 0, .target_ended = true}) ==
          "no launch by process 1234 in 5 s; it has exited");
    CHECK(launches(given([](Options& o) { o.tid = 77; }), {.users = 0}) ==
          "no launch by thread 77 in 5 s; its process maps no CUDA driver");
    CHECK(launches(given_pids({1, 2, 3}), {.users = 2}) ==
          "no launch by processes 1, 2 and 3 in 5 s; 2 of them map CUDA; -v lists them");
    CHECK(launches(given_pids({1, 2}), {.users = 0}) ==
          "no launch by processes 1 and 2 in 5 s; none of them maps CUDA");
    CHECK(launches(given_pids({1, 2, 3, 4, 5}), {.users = 1}) ==
          "no launch by 5 processes in 5 s; 1 of them maps CUDA; -v names it");
    CHECK(launches(given([](Options& o) { o.program = {"true"}; }), {.users = 0}) ==
          "no launch by the program that was started in 5 s; none of its processes maps CUDA");
    CHECK(launches(given([](Options& o) { o.comm = "py"; }), {.users = 3}) ==
          "no launch by a process or thread whose name contains 'py' in 5 s; 3 processes map CUDA; -v lists them");
    CHECK(launches(given([](Options& o) { o.comm = "py"; }), {.users = 3, .named_alone = true}) ==
          "no launch by a process or thread whose name contains 'py' in 5 s; 3 of them map CUDA; -v lists them");
    CHECK(launches(given([](Options& o) { o.pids = {1}, o.comm = "py"; }), {.users = 1}) ==
          "no launch by process 1, in a thread whose name contains 'py' in 5 s");
    CHECK(launches(given([](Options& o) { o.cgroup = "x"; }), {.cgroup = "/sys/fs/cgroup/x", .users = 1}) ==
          "no launch in cgroup /sys/fs/cgroup/x in 5 s; 1 of its processes maps CUDA; -v names it");
}

TEST_CASE("an empty report of nvioctl states that no GPU driver is loaded")
{
    CHECK(sentence({.noun = "driver call", .length = 1s}, Options()) == "no driver call in 1 s");
    CHECK(sentence({.noun = "driver call", .length = 1s, .driver_missing = true}, Options()) ==
          "no driver call in 1 s; no GPU driver is loaded");
}
