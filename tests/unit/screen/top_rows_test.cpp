// SPDX-License-Identifier: Apache-2.0
#include "screen/snapshot.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

using namespace gpusnoop;

namespace {

Snapshot machine()
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    Snapshot snapshot;
    snapshot.columns = {{{"COMM", "comm", Unit::text}, ""}, {{"RATE", "rate", Unit::rate}, ""}};
    snapshot.rows = {{"10", "pod-b", {"Copier", 5.0}}, {"9", "pod-a", {"trainer", 5.0}}, {"8", "", {"idle", Cell{}}},
                     {"7", "pod-a", {"leaker", 50.0}}, {"6", "", {"odd", nan}},          {"5", "pod-b", {}}};
    return snapshot;
}

std::string ids(const Snapshot& snapshot, const Arrangement& arrangement)
{
    std::string result;
    for (const TopRow* row : arrange(snapshot, arrangement))
        result += row->id + " ";
    return result;
}

} // namespace

TEST_CASE("arrange() sorts rows", "[top_rows]")
{
    const Snapshot snapshot = machine();
    CHECK(ids(snapshot, {}) == "10 9 8 7 6 5 ");
    CHECK(ids(snapshot, {.sort = "rate"}) == "7 9 10 5 6 8 "); // equal values by id, unknown values last
    CHECK(ids(snapshot, {.sort = "rate", .ascending = true}) == "9 10 7 5 6 8 ");
    CHECK(ids(snapshot, {.sort = "comm", .ascending = true}) == "10 8 7 6 9 5 ");
    CHECK(ids(snapshot, {.sort = "no such column"}) == "10 9 8 7 6 5 ");
}

TEST_CASE("arrange() filters rows by text, ignoring case", "[top_rows]")
{
    const Snapshot snapshot = machine();
    CHECK(ids(snapshot, {.filter = "ER"}) == "10 9 7 ");
    CHECK(ids(snapshot, {.filter = "pod-a"}) == "9 7 ");
    CHECK(ids(snapshot, {.filter = "absent"}).empty());
    CHECK(contains("", ""));
    CHECK_FALSE(contains("ab", "abc"));
}

TEST_CASE("the tree groups rows by branch", "[top_rows]")
{
    const Snapshot snapshot = machine();
    CHECK(ids(snapshot, {.sort = "rate", .tree = true}) == "7 9 10 5 6 8 ");
    CHECK(ids(snapshot, {.sort = "rate", .ascending = true, .tree = true}) == "9 7 10 5 6 8 ");
}

TEST_CASE("a frozen order is kept", "[top_rows]")
{
    const Snapshot snapshot = machine();
    CHECK(ids(snapshot, {.sort = "rate", .frozen = {"5", "gone", "10"}}) == "5 10 7 9 6 8 ");
}

TEST_CASE("a sum that includes a lower bound or an estimate is marked as such", "[top_rows]")
{
    const std::vector<TopColumn> columns = {{.column = {"MEM", "mem", Unit::bytes}, .about = "", .adds = true}};
    const TopRow exact{"1", "", {uint64_t{5}}}, least{"2", "", {AtLeast{3}}}, unknown{"3", "", {Cell{}}};
    auto sum = [&](std::vector<const TopRow*> rows) { return sum_of(columns, rows).at(0); };
    CHECK(sum({&exact, &unknown, &exact}) == Cell(uint64_t{10}));
    CHECK(sum({&exact, &least, &exact}) == Cell(AtLeast{13}));
    CHECK(sum({&least, &unknown}) == Cell(AtLeast{3}));
    CHECK(sum({&unknown}) == Cell());
    const TopRow shrinking{"5", "", {-5.0}};
    CHECK(sum({&exact, &shrinking}) == Cell(0.0));
    CHECK(sum({&shrinking, &exact}) == Cell(0.0));
    CHECK(sum({&shrinking, &least, &unknown}) == Cell(-2.0));
    const TopRow estimated{"4", "", {estimate_of(uint64_t{7})}};
    CHECK(sum({&exact, &estimated, &unknown}) == Cell(Estimate{uint64_t{12}}));
}
