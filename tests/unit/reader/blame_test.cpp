// SPDX-License-Identifier: Apache-2.0
#include "reader/blame.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <unistd.h>
#include <vector>

using namespace gpusnoop;

namespace {

struct Recorded : Blame {
    Recorded() : Blame("it is not traced", "", [this](std::string text) { reports.push_back(std::move(text)); }) {}
    std::vector<std::string> reports;
};

} // namespace

TEST_CASE("a user is blocked after 8 strikes, with one message", "[blame]")
{
    Recorded blame;
    for (unsigned strike = 1; strike <= Blame::strikes_max; strike++) {
        CHECK_FALSE(blame.is_blocked(getpid()));
        blame.strike(getpid(), blame.user_of(getpid()), "libcuda.so", "it cannot be read within 3 s");
        CHECK(blame.reports.size() == strike + (strike == Blame::strikes_max));
    }
    CHECK(blame.is_blocked(getpid()));
    blame.strike(0x7fffffff, 0, "libcuda.so", "the process has exited");
    CHECK(blame.reports.size() == Blame::strikes_max + 1);
}

TEST_CASE("a blocked process is reported as blocked, and others are not", "[blame]")
{
    Recorded blame;
    CHECK(blame.block(getpid()));
    CHECK_FALSE(blame.block(getpid()));
    CHECK(blame.is_blocked(getpid()));
    CHECK_FALSE(blame.is_blocked(getppid()));
    CHECK(blame.reports.empty());
}

TEST_CASE("the first crash of a helper over a file is forgiven, once per process", "[blame]")
{
    Recorded blame;
    CHECK(blame.forgive(7, {1, 2}));
    CHECK(blame.forgive(8, {1, 2}));
    CHECK_FALSE(blame.forgive(7, {1, 2}));
}
