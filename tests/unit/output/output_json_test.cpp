// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/output/captured.hpp"

#include <limits>

using namespace gpusnoop;
using namespace gpusnoop::captured;

TEST_CASE("JSON records", "[output]")
{
    Zone zone("UTC");
    Histogram histogram;
    histogram.add(histogram_bucket(3), 4);
    histogram.add(histogram_bucket(1000), 1);
    const std::pair<std::string_view, Cell> fields[] = {
        {"pid", uint64_t{7}}, {"comm", "a\"b"}, {"tid", std::monostate{}}};
    const Written result = written(make_json_output(), [&](Output& output) {
        output.start("cudatop", "1.0", 340);
        output.attached(12, 2, "session", {});
        output.begin_table(columns, ten_o_clock, 1000000000);
        output.row(columns, full_row, {});
        output.row(columns, empty_row, std::vector<std::string>{"main", "f\n"});
        output.event(columns, full_row, {});
        output.histogram("pid = 7", "usecs", histogram, fields, ten_o_clock);
        output.histogram("", "usecs", Histogram(), {}, ten_o_clock);
        output.end(5);
    });
    const std::string cells = R"("pid":1234,"comm":"python3","launches":1000,"launches_per_second":12.345,)"
                              R"("bytes":12345678,"latency_ns":1234,"busy_percent":99.95,"grid":[64,2,1],)"
                              R"("stream":"0x7f00dead","cgroup":4294967296,"kernel":"void k<int>"})";
    const std::string time = R"("time":"2026-01-01T10:00:00.123456+00:00",)";
    CHECK(result.out ==
          "{\"type\":\"start\",\"tool\":\"cudatop\",\"schema\":1,\"version\":\"1.0\",\"duration_floor_ns\":340}\n"
          "{\"type\":\"attached\",\"functions\":12,\"files\":2,\"tier\":\"session\"}\n"
          "{\"type\":\"row\"," +
              time + "\"interval_ns\":1000000000," + time + cells +
              "\n"
              "{\"type\":\"row\"," +
              time +
              "\"interval_ns\":1000000000,\"frames\":[\"main\",\"f\\u000a\"]}\n"
              "{\"type\":\"event\"," +
              time + cells +
              "\n"
              "{\"type\":\"hist\"," +
              time +
              "\"title\":\"pid = 7\",\"unit\":\"usecs\",\"pid\":7,\"comm\":\"a\\\"b\","
              "\"total\":5,\"p50\":3,\"p95\":991,\"p99\":991,\"buckets\":[{\"low\":3,\"high\":3,\"count\":4},"
              "{\"low\":960,\"high\":1023,\"count\":1}]}\n"
              "{\"type\":\"hist\"," +
              time +
              "\"title\":\"\",\"unit\":\"usecs\",\"total\":0,\"buckets\":[]}\n"
              "{\"type\":\"end\",\"duration_ns\":5}\n");
    CHECK(result.err.empty());
}

TEST_CASE("JSON has local time with its offset", "[output]")
{
    Zone zone("<+0530>-5:30");
    auto use = [](Output& output) {
        for (uint64_t wall_ns : {ten_o_clock, ten_o_clock + 900000, ten_o_clock + 1000000000, uint64_t{0}})
            output.event(std::span(columns, 1), {wall_ns}, {});
    };
    auto records = json_of(use);
    REQUIRE(records.size() == 4);
    CHECK(records[0]["time"] == "2026-01-01T15:30:00.123456+05:30");
    CHECK(records[1]["time"] == "2026-01-01T15:30:00.124356+05:30");
    CHECK(records[2]["time"] == "2026-01-01T15:30:01.123456+05:30");
    CHECK(records[3]["time"] == "1970-01-01T05:30:00.000000+05:30");
}

TEST_CASE("JSON numbers", "[output]")
{
    // Prints each value in a line of its own.
    auto cells = [](Unit unit, const std::vector<Cell>& values) {
        const Column column[] = {{"X", "x", unit, 1}};
        std::string text;
        for (const json& record : json_of([&](Output& output) {
                 for (const Cell& value : values)
                     output.event(column, {value}, {});
             }))
            text += (record.contains("x") ? record["x"].dump() : "none") + " ";
        return text;
    };
    CHECK(cells(Unit::count, {UINT64_MAX, INT64_MIN}) == "18446744073709551615 -9223372036854775808 ");
    CHECK(cells(Unit::ns_as_us, {UINT64_MAX}) == "18446744073709551615 ");
    CHECK(cells(Unit::bytes, {-5L, AtLeast{1536}, estimate_of(1536UL)}) == "-5 1536 1536 ");
    CHECK(cells(Unit::hex, {UINT64_MAX, -1L}) == R"("0xffffffffffffffff" "0xffffffffffffffff" )");
    constexpr auto infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(cells(Unit::rate, {nan, infinity, 0.0, -0.0001, 100.0, 1.0005001, 1e300, estimate_of(1.5)}) ==
          "none none 0 0 100 1.001 1e+300 1.5 ");
    for (const double value : {std::numeric_limits<double>::max(), -123456789012345.672})
        CHECK(json::parse(cells(Unit::rate, {value})) == value);
}
