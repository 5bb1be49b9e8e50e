// SPDX-License-Identifier: Apache-2.0
#include "code/dispatch_tables.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

TEST_CASE("a way is what is added and loaded", "[ways]")
{
    const std::optional<Way> way = loaded_from(plus(plus(loaded_from(plus(Way(), 16)), 8), 24));
    CHECK(path_by(way) == Path{16, 32});
}

TEST_CASE("a way ends with a load", "[ways]")
{
    CHECK_FALSE(path_by(Way()));
    CHECK_FALSE(path_by(plus(loaded_from(Way()), 8)));
    CHECK_FALSE(path_by(std::nullopt));
    CHECK(path_by(loaded_from(Way())) == Path{0});
}

TEST_CASE("a way has so many loads, and places within so many bytes", "[ways]")
{
    std::optional<Way> way = Way();
    for (size_t i = 0; i < Way::loads_max; i++)
        way = loaded_from(way);
    CHECK(path_by(way) == Path(Way::loads_max, 0));
    CHECK_FALSE(loaded_from(way));
    CHECK(plus(Way(), Way::offset_max));
    CHECK_FALSE(plus(Way(), Way::offset_max + 1));
    CHECK_FALSE(plus(plus(Way(), Way::offset_max), 1));
    CHECK_FALSE(plus(Way(), -8));
    CHECK_FALSE(plus(std::nullopt, 8));
    CHECK_FALSE(loaded_from(std::nullopt));
}
