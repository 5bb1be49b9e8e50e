// SPDX-License-Identifier: Apache-2.0
// Reading a recording as a series of reports.
#include "base/error.hpp"
#include "output/recording.hpp"
#include "tests/unit/base/folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

using namespace gpusnoop;
using Catch::Matchers::EndsWith;

namespace {

// A temporary recording.
struct File {
    explicit File(const std::string& text) : paths{folder.file("recording.json", text)} {}

    Folder folder;
    std::vector<std::string> paths;
};

std::string start(std::string_view tool, std::string_view run, std::string_view host = "node1")
{
    return fmt::format(R"({{"type":"start","schema":1,"tool":"{}","run":"{}","host":"{}"}})", tool, run, host) + "\n";
}

std::string row(std::string_view run, int second, std::string_view more = R"("by":"pid","pid":7)")
{
    return fmt::format(
        R"({{"type":"row","run":"{}","time":"2026-11-26T10:00:{:02}.500000+00:00","interval_ns":1000000000,{}}})"
        "\n",
        run, second, more);
}

std::string table(std::string_view run, std::string_view column)
{
    return fmt::format("{{\"type\":\"table\",\"run\":\"{}\",\"columns\":[\"{}\"]}}\n", run, column);
}

constexpr uint64_t ten = 1'795'687'200'000'000'000; // 2026-11-26, 10:00

} // namespace

TEST_CASE("rows with the same time are one report")
{
    const File file(start("cudatop", "a") + row("a", 1) + row("a", 1, R"("by":"gpu","gpu_index":0)") + row("a", 2));
    const Moments moments(file.paths, "cudatop");
    REQUIRE(moments.all().size() == 2);
    CHECK(moments.all()[0].rows.size() == 2);
    CHECK(moments.all()[0].seconds == 1);
    CHECK(moments.all()[0].wall_ns == ten + 1'500'000'000);
    CHECK(moments.run_of(moments.all()[1]).host == "node1");
    CHECK(moments.keys().contains("pid"));
    CHECK_FALSE(moments.keys().contains("gpu_index")); // keys of GPU rows do not count
}

TEST_CASE("tables of GPUs and totals belong to the same report")
{
    const auto report = [&](int second) {
        return table("a", "PID") + row("a", second, R"("by":"total")") + row("a", second) + table("a", "GPU") +
               row("a", second, R"("by":"gpu","gpu_index":0)") + table("a", "DIAGNOSIS") +
               row("a", second, R"("by":"diagnosis","pid":7)");
    };
    const File file(start("cudatop", "a") + report(1) + report(2));
    const Moments moments(file.paths, "cudatop");
    REQUIRE(moments.all().size() == 2);
    for (const Moment& moment : moments.all()) {
        CHECK(moment.rows.size() == 4);
        REQUIRE(moment.table);
        CHECK(moments.table(*moment.table) == Record::Texts{"PID"});
    }
}

TEST_CASE("reports of all runs are sorted by time, and those of other tools are skipped")
{
    const File file(start("cudatop", "a", "one") + start("cudatop", "b", "two") + start("cudalaunch", "c") +
                    row("a", 4) + row("b", 2) + row("c", 1) + row("a", 6));
    const Moments moments(file.paths, "cudatop");
    REQUIRE(moments.all().size() == 3);
    CHECK(moments.run_of(moments.all()[0]).host == "two");
    CHECK(moments.run_of(moments.all()[1]).host == "one");
    CHECK(moments.run_of(moments.all()[2]).host == "one");
}

TEST_CASE("the report at or after a time is found")
{
    const File file(start("cudatop", "a") + row("a", 1) + row("a", 5) + row("a", 9));
    const Moments moments(file.paths, "cudatop");
    CHECK(moments.at(0) == 0);
    CHECK(moments.at(ten + 1'500'000'000) == 0);
    CHECK(moments.at(ten + 1'500'000'001) == 1);
    CHECK(moments.at(ten + 60'000'000'000) == 2);
}

TEST_CASE("damaged and excess lines are skipped and counted")
{
    const File file(start("cudatop", "a") + row("a", 1) + "no JSON\n" +
                    R"({"type":"lost","run":"a","events":41,"ends":1})"
                    "\n" +
                    row("a", 2) + row("a", 3) + R"({"type":"row","ti)");
    const Moments moments(file.paths, "cudatop", 2 * (row("a", 1).size() + Moments::row_overhead));
    CHECK(moments.all().size() == 2);
    CHECK(moments.left_out() == 1);
    CHECK(moments.lost() == 42);
    CHECK(moments.unread().not_json == 1);
    CHECK(moments.unread().damage.cut_off);
}

TEST_CASE("the rows of a report are limited")
{
    std::string text = start("cudatop", "a");
    for (size_t i = 0; i < Moments::rows_max + 3; i++)
        text += row("a", 1);
    const File file(text + row("a", 2));
    const Moments moments(file.paths, "cudatop");
    REQUIRE(moments.all().size() == 2);
    CHECK(moments.all()[0].rows.size() == Moments::rows_max);
    CHECK(moments.left_out() == 3);
}

TEST_CASE("implausible times are refused")
{
    CHECK_FALSE(parse_wall_time("9999-01-01T00:00:00.000000+00:00"));
    CHECK_FALSE(parse_wall_time("1960-01-01T00:00:00.000000+00:00"));
    CHECK_FALSE(parse_wall_time(""));
    CHECK(parse_wall_time("2026-11-26T10:00:00.000000+00:00") == ten);
}

TEST_CASE("a file without reports of the tool is refused, and the error names its tool")
{
    for (const std::string& text : {std::string(), std::string("text\n"),
                                    start("cudatop", "a") + R"({"type":"row","run":"a","time":"yesterday"})" + "\n"})
        CHECK_THROWS_AS(Moments(File(text).paths, "cudatop"), Error);
    CHECK_THROWS_WITH(Moments(File(start("cudamemcpy", "a") + row("a", 1)).paths, "cudalaunch"),
                      EndsWith("is a recording of cudamemcpy, not of cudalaunch"));
}

TEST_CASE("reports have the table layout of their run")
{
    const File file(start("cudalaunch", "a") + start("cudalaunch", "b") + row("a", 1) + table("a", "A a count 7") +
                    table("b", "B b count 7") + row("a", 2) + row("b", 3) + table("a", "C c count 7") + row("a", 2));
    const Moments moments(file.paths, "cudalaunch");
    REQUIRE(moments.all().size() == 4);
    CHECK_FALSE(moments.all()[0].table);
    CHECK(moments.table(moments.all()[1].table.value()).front() == "A a count 7");
    CHECK(moments.table(moments.all()[2].table.value()).front() == "C c count 7"); // another table with the same time
    CHECK(moments.table(moments.all()[3].table.value()).front() == "B b count 7");
}
