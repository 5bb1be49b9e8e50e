// SPDX-License-Identifier: Apache-2.0
#include "code/dispatch_tables.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

TEST_CASE("a path consists of offsets and loads", "[paths]")
{
    const std::optional<PartialPath> path = loaded_from(plus(plus(loaded_from(plus(PartialPath(), 16)), 8), 24));
    CHECK(path_by(path) == Path{16, 32});
}

TEST_CASE("a path ends with a load", "[paths]")
{
    CHECK_FALSE(path_by(PartialPath()));
    CHECK_FALSE(path_by(plus(loaded_from(PartialPath()), 8)));
    CHECK_FALSE(path_by(std::nullopt));
    CHECK(path_by(loaded_from(PartialPath())) == Path{0});
}

TEST_CASE("the number of loads and the offsets are limited", "[paths]")
{
    std::optional<PartialPath> path = PartialPath();
    for (size_t i = 0; i < PartialPath::max_loads; i++)
        path = loaded_from(path);
    CHECK(path_by(path) == Path(PartialPath::max_loads, 0));
    CHECK_FALSE(loaded_from(path));
    CHECK(plus(PartialPath(), PartialPath::max_offset));
    CHECK_FALSE(plus(PartialPath(), PartialPath::max_offset + 1));
    CHECK_FALSE(plus(plus(PartialPath(), PartialPath::max_offset), 1));
    CHECK_FALSE(plus(PartialPath(), -8));
    CHECK_FALSE(plus(std::nullopt, 8));
    CHECK_FALSE(loaded_from(std::nullopt));
}
