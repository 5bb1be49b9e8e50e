// SPDX-License-Identifier: Apache-2.0
// Cells of text tables, restored from recorded JSON rows.
#include "output/shown_cells.hpp"
#include "rows/table.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

Cell cell(std::string_view text, const Column& column, ShownTable table)
{
    return shown_cell(Record::parse(text).value(), column, table);
}

} // namespace

TEST_CASE("recorded columns are parsed, and invalid ones are skipped")
{
    const Column columns[] = {{"PID", "pid", Unit::count, 7},
                              {"", "comm", Unit::text},
                              {"KERNEL", "", Unit::text, 6},
                              {"LAUNCHES", "launches", Unit::count, 9, true, true, true},
                              {"LIVE", "live_bytes", Unit::bytes, 7, true, true, false, true},
                              {"HIDDEN", "hidden", Unit::count, 7, false}};
    std::vector<std::string> texts = table_columns(columns);
    CHECK(texts == std::vector<std::string>{"PID pid count 7", "KERNEL - text 6", "LAUNCHES launches count 9 calls",
                                            "LIVE live_bytes bytes 7 level"});
    texts.insert(texts.end(), {"", "X", "X x", "X x colour 7", "X x count -7", "X x count 9999", "\x1b[2J x count 7"});
    const RecordedColumns read(texts);
    REQUIRE(read.all().size() == 4);
    CHECK(read.all()[1].header == "KERNEL");
    CHECK(read.all()[1].key.empty());
    CHECK(read.all()[2].of_calls);
    CHECK(read.all()[3].is_level);
    CHECK(table_columns(read.all()) == std::vector(texts.begin(), texts.begin() + 4));
}

TEST_CASE("rates and percentages are computed from recorded values")
{
    const ShownTable launches{.tool = "cudalaunch", .seconds = 2}, copies{.tool = "cudamemcpy", .seconds = 2};
    const Column rate{"LAUNCH/s", "launches_per_second", Unit::rate, 9}, text{"LAUNCH/s", "", Unit::rate, 9};
    CHECK(cell(R"({"launches":3})", rate, {.tool = "cudagraph", .seconds = 2}) == Cell(1.5));
    CHECK(cell(R"({"graph_launches":3})", text, launches) == Cell(1.5));
    CHECK(cell(R"({"copies":4,"synchronous":1})", {"SYNC%", "", Unit::percent}, copies) == Cell(25.0));
    CHECK(cell(R"({"bytes":5})", {"BYTES/s", "", Unit::bytes}, copies) == Cell(2UL));
    CHECK(cell(R"({"launches":4,"sampled_percent":10})", {"L", "launches", Unit::count, 1, true, true, true},
               launches) == Cell(Estimate{4UL}));
    CHECK(cell(R"({"live_bytes":4,"live_is_lower_bound":1})",
               {"L", "live_bytes", Unit::bytes, 1, true, true, false, true}, {.tool = "gpualloc"}) == Cell(AtLeast{4}));
    CHECK(cell("{}", {"ERRORS", "errors", Unit::count}, launches) == Cell());
    CHECK(cell(R"({"grid":[1,2,3]})", {"GRID", "grid", Unit::dim3}, launches) == Cell(Dim3{1, 2, 3}));
}

TEST_CASE("kernels, graphs and host functions have the same names as in live tables")
{
    const Column kernel{"KERNEL", "", Unit::text, 6};
    const ShownTable table{.tool = "cudalaunch", .seconds = 1, .names = "short"};
    CHECK(cell(R"({"kernel":"k","launches":1})", kernel, table) == Cell("k"));
    CHECK(cell(R"({"handle":"0x1f","launches":1})", kernel, table) == Cell("0x1f"));
    CHECK(cell(R"({"handle":"0x1f","graph_launches":1})", kernel, table) == Cell("[graph 0x1f]"));
    CHECK(cell(R"({"kernel":"f","host_functions":1})", kernel, table) == Cell("[host function f]"));
}

TEST_CASE("pods and containers are shown as in live tables")
{
    const Column pod{"POD", "", Unit::text, 40};
    CHECK(cell(R"({"pod":"a","namespace":"n"})", pod, {.tool = "cudasync"}) == Cell("n/a"));
    CHECK(cell("{}", pod, {.tool = "cudasync"}) == Cell());
}
