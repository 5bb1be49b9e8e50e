// SPDX-License-Identifier: Apache-2.0
#include "screen/history.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fmt/format.h>

using namespace gpusnoop;

namespace {

// Returns a snapshot of rows with these ids and values; an empty cell is an unknown value.
Snapshot snapshot_of(const std::vector<std::pair<std::string, Cell>>& rows)
{
    Snapshot snapshot;
    snapshot.by = "pid";
    snapshot.seconds = 0.5;
    snapshot.columns = {{{"COMM", "comm", Unit::text}, "Name."}, {{"N", "n", Unit::count}, "Number."}};
    for (const auto& [id, cell] : rows)
        snapshot.rows.push_back({id, {}, {"x", cell}});
    return snapshot;
}

std::string text(const std::vector<double>& values)
{
    std::string result;
    for (double value : values)
        result += std::isnan(value) ? "-" : fmt::format("{}", value);
    return result;
}

} // namespace

TEST_CASE("unknown values are stored as gaps in a history", "[history]")
{
    History history;
    history.add(snapshot_of({{"a", uint64_t{1}}}));
    history.add(snapshot_of({{"a", Cell{}}, {"b", 7.0}}));
    history.add(snapshot_of({{"b", int64_t{8}}}));
    history.add(snapshot_of({{"a", uint64_t{3}}, {"a", uint64_t{9}}})); // a duplicate id: the first row counts
    CHECK(text(history.values("a", 1)) == "1--3");
    CHECK(text(history.values("a", 1, 2)) == "-3");
    CHECK(text(history.values("b", 1)) == "78-");
    CHECK(text(history.values("a", 0)) == "----"); // text
    CHECK(history.values("a", 2).empty());
    CHECK(history.values("c", 1).empty());
    CHECK(history.seconds(3) == 1.5);
    CHECK(history.seconds(99) == 2);
}

TEST_CASE("a history is bounded in points, rows and bytes", "[history]")
{
    History history({.points = 5, .rows = 3, .bytes = 1 << 20});
    for (uint64_t i = 0; i < 12; ++i)
        history.add(snapshot_of({{"a", i % 10}}));
    CHECK(text(history.values("a", 1)) == "78901");
    history.add(snapshot_of({{"b", 1.0}}));
    history.add(snapshot_of({{"c", 1.0}}));
    history.add(snapshot_of({{"d", 1.0}}));
    CHECK(history.rows() == 3); // the row that was absent longest was dropped
    CHECK(history.values("a", 1).empty());
    for (int i = 0; i < 4; ++i)
        history.add(snapshot_of({{"d", 2.0}}));
    CHECK(history.rows() == 1); // the others have no value within the plotted time
    CHECK(text(history.values("d", 1)) == "12222");
}

TEST_CASE("an endless stream of new rows uses bounded memory", "[history]")
{
    History history({.points = 300, .rows = 1000, .bytes = 64 << 10});
    for (int i = 0; i < 400; ++i) {
        std::vector<std::pair<std::string, Cell>> rows;
        for (int row = 0; row < 50; ++row)
            rows.emplace_back(fmt::format("{}", row < 10 ? row : i * 50 + row), 1.0);
        history.add(snapshot_of(rows));
        REQUIRE(history.bytes() <= 64 << 10);
        REQUIRE(history.rows() <= 1000);
    }
    CHECK(history.values("3", 1).size() == 300); // rows that remain are kept
}

TEST_CASE("a new grouping or new columns start a new history", "[history]")
{
    History history;
    history.add(snapshot_of({{"a", 1.0}}));
    Snapshot pods = snapshot_of({{"a", 2.0}});
    pods.by = "pod";
    history.add(pods);
    CHECK(text(history.values("a", 1)) == "2");
    pods.columns.pop_back();
    history.add(pods); // its rows have more cells than columns
    CHECK(history.rows() == 0);
}
