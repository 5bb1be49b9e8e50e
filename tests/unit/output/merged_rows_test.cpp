// SPDX-License-Identifier: Apache-2.0
// Merging of recorded rows: values are merged if possible; other values become empty.
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

std::vector<Record> merged(std::string_view tool, std::string_view by,
                           const std::vector<std::vector<const char*>>& moments,
                           std::set<std::string>* unmergeable = nullptr)
{
    MergedRows rows(tool, row_keys_named(by), {}, false);
    for (size_t moment = 0; moment < moments.size(); moment++)
        for (const char* text : moments[moment])
            rows.add(row(text), moment);
    if (unmergeable)
        *unmergeable = rows.unmergeable();
    return rows.rows();
}

} // namespace

TEST_CASE("counts are summed, maxima are kept, and percentiles become empty")
{
    std::set<std::string> unmergeable;
    const auto rows =
        merged("cudalaunch", "pod",
               {{R"({"pod":"a","namespace":"n","pid":1,"launches":3,"latency_max_ns":7,"latency_p99_ns":6})",
                 R"({"pod":"a","namespace":"n","pid":2,"launches":4,"latency_max_ns":5,"latency_p99_ns":5})",
                 R"({"pod":"a","namespace":"m","pid":3,"launches":9,"latency_max_ns":1})"},
                {R"({"pod":"a","namespace":"n","pid":1,"launches":10,"graph_launches":2})"}},
               &unmergeable);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].number("launches") == 17);
    CHECK(rows[0].number("graph_launches") == 2); // the other rows do not have it, which means 0
    CHECK(rows[0].number("latency_max_ns") == 7);
    CHECK_FALSE(rows[0].number("latency_p99_ns"));
    CHECK_FALSE(rows[0].number("pid"));
    CHECK(rows[0].text("namespace") == "n");
    CHECK(rows[1].number("launches") == 9);
    CHECK(unmergeable.contains("latency_p99_ns"));
    CHECK_FALSE(unmergeable.contains("launches"));
}

TEST_CASE("levels are summed over the rows of the last report")
{
    const auto rows = merged("gpualloc", "comm",
                             {{R"({"comm":"x","pid":1,"live_bytes":10,"peak_bytes":20,"allocs":1})",
                               R"({"comm":"y","pid":3,"live_bytes":1,"peak_bytes":1,"allocs":1})"},
                              {R"({"comm":"x","pid":1,"live_bytes":5,"peak_bytes":21,"allocs":1})",
                               R"({"comm":"x","pid":2,"live_bytes":6,"peak_bytes":6,"allocs":1})"}});
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].number("live_bytes") == 11);
    CHECK(rows[0].number("allocs") == 3);
    CHECK_FALSE(rows[0].number("peak_bytes")); // the peaks of two processes may be at different times
    CHECK(rows[1].number("allocs") == 1);
    CHECK_FALSE(rows[1].number("live_bytes")); // this process has no row in the last report
}

TEST_CASE("the latest peak of one row is kept")
{
    const auto rows = merged("gpualloc", "pid", {{R"({"pid":1,"peak_bytes":20})"}, {R"({"pid":1,"peak_bytes":21})"}});
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].number("peak_bytes") == 21);
}

TEST_CASE("rows that lack a grouping key are refused")
{
    const auto by = [](std::string_view what, const char* text) { merged("cudalaunch", what, {{text}}); };
    CHECK_THROWS_AS(by("pod", R"({"kernel":"k","processes":2,"launches":1})"), Error);
    CHECK_NOTHROW(by("pod", R"({"kernel":"k","processes":1,"launches":1})")); // a single process, which is not in a pod
    CHECK_THROWS_AS(by("kernel", R"({"pid":1,"launches":1})"), Error);
    CHECK_NOTHROW(by("kernel,pid", R"({"pid":1,"process_start_ns":5,"handle":"0x10","launches":1})"));
    CHECK_THROWS_AS(row_keys_named("colour"), UsageError);
}

TEST_CASE("a value column with the same header as a key is not a key")
{
    const Column figure{"DEVICE", "device_bytes", Unit::bytes}, key{"DEVICE", "device", Unit::count};
    CHECK(row_key_of(figure) == nullptr);
    REQUIRE(row_key_of(key));
    CHECK(row_key_of(key)->name == "device");
}
