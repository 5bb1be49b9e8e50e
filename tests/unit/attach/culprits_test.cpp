// SPDX-License-Identifier: Apache-2.0
#include "attach/culprits.hpp"

#include <catch2/catch_test_macros.hpp>
#include <unistd.h>

using namespace gpusnoop;

TEST_CASE("a user of whose files many helpers were lost is looked at no more, which is told", "[culprits]")
{
    Complaints complaints;
    Culprits culprits(complaints);
    for (unsigned strike = 1; strike <= Culprits::strikes_max; strike++) {
        CHECK_FALSE(culprits.include(getpid()));
        culprits.strike(getpid(), "libcuda.so", "it cannot be read within 3 s");
        CHECK(complaints.all().size() == strike + (strike == Culprits::strikes_max));
    }
    CHECK(culprits.include(getpid()));
    culprits.strike(0x7fffffff, "libcuda.so", "of a process that is not there");
    CHECK(complaints.all().size() == Culprits::strikes_max + 1);
}

TEST_CASE("a process whose mappings cannot be read is looked at no more, others are", "[culprits]")
{
    Complaints complaints;
    Culprits culprits(complaints);
    culprits.hangs(getpid());
    CHECK(culprits.include(getpid()));
    CHECK_FALSE(culprits.include(getppid()));
    CHECK(complaints.all().empty());
}

TEST_CASE("the first death of a helper is nobody's fault", "[culprits]")
{
    Complaints complaints;
    Culprits culprits(complaints);
    CHECK(culprits.forgive(7, {1, 2}));
    CHECK(culprits.forgive(8, {1, 2}));
    CHECK_FALSE(culprits.forgive(7, {1, 2}));
}

TEST_CASE("complaints end with one that says that there are more", "[culprits]")
{
    Complaints complaints;
    for (size_t i = 0; i < 2 * Complaints::max; i++)
        complaints.add("no");
    CHECK(complaints.all().size() == Complaints::max + 1);
    CHECK(complaints.all().back() != "no");
}
