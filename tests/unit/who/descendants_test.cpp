// SPDX-License-Identifier: Apache-2.0
#include "who/processes.hpp"

#include <catch2/catch_test_macros.hpp>

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
