// SPDX-License-Identifier: Apache-2.0
// Rows of a recording are added up by what adds up, and by nothing else.
#include "base/error.hpp"
#include "base/options.hpp"
#include "output/merged_rows.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

Record row(std::string_view text)
{
    return Record::parse(text).value();
}

std::vector<Record> added(std::string_view tool, std::string_view by,
                          const std::vector<std::vector<const char*>>& moments, std::set<std::string>* untold = nullptr)
{
    MergedRows rows(tool, row_keys_named(by), {}, false);
    for (size_t moment = 0; moment < moments.size(); moment++)
        for (const char* text : moments[moment])
            rows.add(row(text), moment);
    if (untold)
        *untold = rows.unmergeable();
    return rows.rows();
}

} // namespace

TEST_CASE("counts of rows add up, the largest is the largest, and percentiles are not known")
{
    std::set<std::string> untold;
    const auto rows =
        added("cudalaunch", "pod",
              {{R"({"pod":"a","namespace":"n","pid":1,"launches":3,"latency_max_ns":7,"latency_p99_ns":6})",
                R"({"pod":"a","namespace":"n","pid":2,"launches":4,"latency_max_ns":5,"latency_p99_ns":5})",
                R"({"pod":"a","namespace":"m","pid":3,"launches":9,"latency_max_ns":1})"},
               {R"({"pod":"a","namespace":"n","pid":1,"launches":10,"graph_launches":2})"}},
              &untold);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].number("launches") == 17);
    CHECK(rows[0].number("graph_launches") == 2); // in a row that has it
    CHECK(rows[0].number("latency_max_ns") == 7);
    CHECK_FALSE(rows[0].number("latency_p99_ns"));
    CHECK_FALSE(rows[0].number("pid"));
    CHECK(rows[0].text("namespace") == "n");
    CHECK(rows[1].number("launches") == 9);
    CHECK(untold.contains("latency_p99_ns"));
    CHECK_FALSE(untold.contains("launches"));
}

TEST_CASE("what is held is that of the last moment, of all rows together")
{
    const auto rows = added("gpualloc", "comm",
                            {{R"({"comm":"x","pid":1,"live_bytes":10,"peak_bytes":20,"allocs":1})",
                              R"({"comm":"y","pid":3,"live_bytes":1,"peak_bytes":1,"allocs":1})"},
                             {R"({"comm":"x","pid":1,"live_bytes":5,"peak_bytes":21,"allocs":1})",
                              R"({"comm":"x","pid":2,"live_bytes":6,"peak_bytes":6,"allocs":1})"}});
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].number("live_bytes") == 11);
    CHECK(rows[0].number("allocs") == 3);
    CHECK_FALSE(rows[0].number("peak_bytes")); // two peaks need not have been at once
    CHECK(rows[1].number("allocs") == 1);
    CHECK_FALSE(rows[1].number("live_bytes")); // it has no row any more
}

TEST_CASE("of one row over time, the latest peak is the peak")
{
    const auto rows = added("gpualloc", "pid", {{R"({"pid":1,"peak_bytes":20})"}, {R"({"pid":1,"peak_bytes":21})"}});
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].number("peak_bytes") == 21);
}

TEST_CASE("rows that do not say what they are to be told apart by are refused")
{
    const auto by = [](std::string_view what, const char* text) { added("cudalaunch", what, {{text}}); };
    CHECK_THROWS_AS(by("pod", R"({"kernel":"k","processes":2,"launches":1})"), Error);
    CHECK_NOTHROW(by("pod", R"({"kernel":"k","processes":1,"launches":1})")); // its process is in no pod
    CHECK_THROWS_AS(by("kernel", R"({"pid":1,"launches":1})"), Error);
    CHECK_NOTHROW(by("kernel,pid", R"({"pid":1,"process_start_ns":5,"handle":"0x10","launches":1})"));
    CHECK_THROWS_AS(row_keys_named("colour"), UsageError);
}

TEST_CASE("a figure that has the header of a key is none")
{
    const Column figure{"DEVICE", "device_bytes", Unit::bytes}, key{"DEVICE", "device", Unit::count};
    CHECK(row_key_of(figure) == nullptr);
    REQUIRE(row_key_of(key));
    CHECK(row_key_of(key)->name == "device");
}
