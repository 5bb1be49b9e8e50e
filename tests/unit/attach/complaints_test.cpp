// SPDX-License-Identifier: Apache-2.0
#include "attach/known_files.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

TEST_CASE("the number of complaints is limited, and the last one states that there are more", "[complaints]")
{
    Complaints complaints;
    for (size_t i = 0; i < 2 * Complaints::max; i++)
        complaints.add("no");
    CHECK(complaints.all().size() == Complaints::max + 1);
    CHECK(complaints.all().back() != "no");
}
