// SPDX-License-Identifier: Apache-2.0
// Comparisons of recordings with known differences.
#include "base/error.hpp"
#include "base/options.hpp"
#include "tests/unit/base/folder.hpp"
#include "tools/cudadiff/comparison.hpp"
#include "tools/cudadiff/event_row.hpp"
#include "tools/cudadiff/threshold.hpp"
#include "tools/cudadiff/words.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>
#include <fstream>
#include <string>

using namespace gpusnoop;
using namespace gpusnoop::cudadiff;
using Catch::Approx;

namespace {

// Writes recordings into a temporary folder.
class Recordings {
public:
    // `rows`: members of JSON rows, which are written once per second. `rest`: further lines at the end.
    Side side(std::string_view tool, int seconds, const std::vector<std::string>& rows, Group by = Group::whole,
              std::string_view rest = "")
    {
        const std::string path = folder_.file(std::to_string(files_++));
        std::ofstream file(path);
        file << fmt::format("{{\"type\":\"start\",\"tool\":\"{}\",\"version\":\"1\",\"schema\":1,\"host\":\"h\"}}\n",
                            tool);
        for (int second = 1; second <= seconds; second++)
            for (const std::string& row : rows)
                file << fmt::format("{{\"type\":\"row\",\"interval_ns\":1000000000,\"monotonic_ns\":{}000000000,{}}}\n",
                                    1000 + second, row);
        file << rest;
        file.close();
        Side side(by);
        const std::string paths[] = {path};
        side.read(paths);
        return side;
    }

private:
    Folder folder_;
    int files_ = 0;
};

std::string kernel(std::string_view name, int launches, int blocks, std::string_view comm = "train")
{
    return fmt::format(
        R"("comm":"{}","kernel":"{}","launches":{},"blocks_p50":{},"blocks_p95":{},"latency_total_ns":{})", comm, name,
        launches, blocks, blocks * 2, launches * 1'000'000);
}

const Compared& row(const Comparison& all, std::string_view measure, const std::string& group = "")
{
    const Compared* found = all.find(measure, group);
    INFO(measure);
    REQUIRE(found);
    return *found;
}

} // namespace

TEST_CASE("a change is significant if it is larger than the spread of the values")
{
    const std::vector<double> low{10, 11, 12, 10, 11, 12}, high{20, 21, 22, 20, 21, 22}, few{10, 11, 12},
        wide{1, 30, 5, 20, 12, 9};
    const Change up = change_between(low, high);
    CHECK(up.significant);
    CHECK(up.difference == 10);
    CHECK(up.low <= 10);
    CHECK(up.low > 0);
    CHECK(up.share() == Approx(10.0 / 11));
    CHECK(change_between(high, low).significant);
    CHECK_FALSE(change_between(low, wide).significant);
    CHECK_FALSE(change_between(few, high).enough);
    CHECK_FALSE(change_between(few, high).significant);
    CHECK_FALSE(change_between({}, high).enough);
    const std::vector<double> four{1, 1, 1, 1}, four_more{2, 2, 2, 2}, none{0, 0, 0, 0};
    CHECK(change_between(four, four_more).significant);
    CHECK(change_text(change_between(four, four)) == "=");
    CHECK(change_text(change_between(none, four)) == "new");
    CHECK(change_text(change_between(four, none)) == "gone");
    CHECK(change_text(change_between(low, wide)) == "~");
    CHECK(change_text(change_between(four, four_more)) == "2.00x more");
    CHECK(change_text(change_between(four_more, four)) == "2.00x less");
    CHECK(interval_text(change_between(four_more, four)) == "-50.0%..-50.0%");
}

TEST_CASE("a kernel fusion changes launches, grids and time, per second and per unit of work")
{
    Recordings files;
    const Side a = files.side("cudalaunch", 20, {kernel("part", 900, 10), kernel("step", 100, 10)});
    const Side b = files.side("cudalaunch", 20, {kernel("whole", 150, 90), kernel("step", 150, 90)});
    const Comparison by_second = compare(a, b, {});
    CHECK(row(by_second, "launches").change.a == 1000);
    CHECK(row(by_second, "launches").change.b == 300);
    CHECK(row(by_second, "grid-p50").change.b == 90);
    CHECK(row(by_second, "launch-time").change.a == Approx(1.0));
    CHECK(row(by_second, "launches").cost == Approx(0.7));
    REQUIRE(by_second.kernels.size() == 3);
    CHECK(by_second.kernels[0].name == "part");
    CHECK(change_text(by_second.kernels[0].change) == "gone");
    CHECK(by_second.kernels[1].name == "whole");
    CHECK(change_text(by_second.kernels[1].change) == "new");

    const WorkUnit step = WorkUnit::parse("kernel:ste");
    const Comparison by_step = compare(a, b, step);
    CHECK(row(by_step, "launches").change.a == 10);
    CHECK(row(by_step, "launches").change.b == 2);
    CHECK(row(by_step, "launch-time").change.a == 10e6);
    CHECK(summary(by_step, step) ==
          "B makes 80% fewer launches (10.0 -> 2.00 per launch of ste), with grids 9.0 times as large; "
          "time in launch calls 10.00 ms -> 2.00 ms");
    CHECK_THROWS_AS(compare(a, b, WorkUnit::parse("graph-launch")), Error);
    CHECK_THROWS_AS(compare(a, b, WorkUnit::parse("kernel:part")), Error); // B has no launch of this kernel
    CHECK(summary(compare(a, a, {}), {}) == "B launches as often as A");
}

TEST_CASE("a condition is met if a significant change exceeds its limit")
{
    Recordings files;
    const Side a = files.side("cudalaunch", 20, {kernel("k", 100, 10)});
    const Side b = files.side("cudalaunch", 20, {kernel("k", 120, 10)});
    const Comparison more = compare(a, b, {}), less = compare(b, a, {});
    CHECK(Threshold::parse("launches>+10%").failures(more).size() == 1);
    CHECK(Threshold::parse("launches>10%").failures(less).empty());
    CHECK(Threshold::parse("launches>+25%").failures(more).empty());
    CHECK(Threshold::parse("launches<-10%").failures(less).size() == 1);
    CHECK(Threshold::parse("grid-p50<-10%").failures(more).empty());
    CHECK(Threshold::parse("kernel:k>0%").failures(more).size() == 1);
    CHECK(Threshold::parse("kernel-grid:k>0%").failures(more).empty());
    const Side larger = files.side("cudalaunch", 20, {kernel("k", 100, 20)});
    CHECK(Threshold::parse("kernel-grid:k>+10%").failures(compare(a, larger, {})).size() == 1);
    CHECK_THROWS_AS(Threshold::parse("polls>0%").failures(more), Error);
    const Side brief = files.side("cudalaunch", 2, {kernel("k", 120, 10)});
    CHECK_THROWS_AS(Threshold::parse("launches>0%").failures(compare(a, brief, {})), Error);
    for (const char* wrong :
         {"", "launches", "launches>", "launches>10", "launches>x%", ">10%", "launch>10%", "launches>nan%"})
        CHECK_THROWS_AS(Threshold::parse(wrong), UsageError);
}

TEST_CASE("processes and pods are compared by name, and those that only one side has are listed")
{
    Recordings files;
    const Side a =
        files.side("cudalaunch", 10, {kernel("k", 100, 1, "one"), kernel("k", 10, 1, "two")}, Group::process);
    const Side b =
        files.side("cudalaunch", 10, {kernel("k", 50, 1, "one"), kernel("k", 10, 1, "three")}, Group::process);
    const Comparison all = compare(a, b, {});
    CHECK(row(all, "launches", "one").change.b == 50);
    CHECK(row(all, "launches").change.a == 110);
    CHECK_FALSE(all.find("launches", "two"));
    CHECK(all.groups_only_a == std::vector<std::string>{"two"});
    CHECK(all.groups_only_b == std::vector<std::string>{"three"});
    const Side pods =
        files.side("cudalaunch", 10, {R"("pod":"p","namespace":"n","launches":5)", R"("launches":7)"}, Group::pod);
    const Comparison same = compare(pods, pods, {});
    CHECK(row(same, "launches", "n/p").change.a == 5);
    CHECK(row(same, "launches", "-").change.a == 7);
}

TEST_CASE("a measure that one side did not record is not zero")
{
    Recordings files;
    const Side timed = files.side("cudalaunch", 10, {kernel("k", 100, 10)});
    const Side untimed = files.side("cudalaunch", 10, {R"("launches":100)"});
    const Comparison all = compare(timed, untimed, {});
    CHECK(row(all, "launches").change.b == 100);
    CHECK_FALSE(all.find("launch-time"));
    CHECK(all.kernels.empty());
    CHECK(std::ranges::any_of(
        all.one_sided, [](const OneSided& one) { return measures()[one.measure].name == "kernel" && one.in_a; }));
    std::vector<std::string> one_sided;
    for (const OneSided& one : all.one_sided)
        one_sided.push_back(measure_text(one));
    CHECK(std::ranges::count(one_sided, "launches by kernel") == 1);
    CHECK(std::ranges::count(one_sided, "launches") == 0);
    CHECK(std::ranges::count(one_sided, "time in launch calls") == 1);
    const Side top = files.side("cudatop", 10,
                                {R"("by":"total","launches":999)", R"("by":"pid","launches":100,"copies":7)",
                                 R"("by":"gpu","gpu_percent":40)"});
    CHECK(row(compare(top, top, {}), "launches").change.a == 100);
    CHECK(row(compare(top, top, {}), "copies").change.a == 7);
    CHECK(row(compare(top, top, {}), "gpu-busy").change.a == 40);
    CHECK_THROWS_AS(compare(timed, top, {}), Error); // different tools
    const Side copies = files.side("cudamemcpy", 10,
                                   {R"("kind":"H2D","copies":4,"bytes":4096)", R"("kind":"D2H","copies":1,"bytes":8)"});
    const Comparison of_copies = compare(copies, copies, {});
    CHECK(row(of_copies, "copies").change.a == 5);
    CHECK(row(of_copies, "copies:H2D").change.a == 4);
    CHECK(row(of_copies, "copy-size:H2D").change.a == 1024);
}

TEST_CASE("seconds without activity count, except before the first and after the last activity")
{
    Recordings files;
    std::string late;
    for (int second = 31; second <= 40; second++)
        late +=
            fmt::format("{{\"type\":\"row\",\"interval_ns\":1000000000,\"monotonic_ns\":{}000000000,\"launches\":0}}\n",
                        1000 + second);
    const Side a = files.side("cudalaunch", 14, {R"("launches":10)"}, Group::whole, late);
    const std::vector<Block> blocks = a.blocks("cudalaunch", "");
    CHECK(blocks.size() == 12);
    for (const Block& block : blocks)
        CHECK(block.seconds == 1);
    CHECK(a.facts().seconds == 40);
}

TEST_CASE("lines of -e are summed to rows of one second, and then compared")
{
    Recordings recordings;
    const auto side = [&](int calls, int blocks, std::string_view rest = "") {
        std::string lines;
        for (int second = 1; second <= 14; second++) {
            lines += fmt::format(R"({{"type":"event","time_ns":{}000000500,"captured":1,"grid":[9,1,1]}})"
                                 "\n",
                                 1000 + second);
            for (int call = 0; call < calls; call++)
                lines += fmt::format(R"({{"type":"event","time_ns":{}{:09},"comm":"train","function":"cuLaunchKernel",)"
                                     R"("kernel":"k","grid":[{},1,1],"block":[64,2,1],"latency_ns":5000}})"
                                     "\n",
                                     1000 + second, 1000 + call, blocks);
        }
        return recordings.side("cudalaunch", 0, {}, Group::whole, lines + std::string(rest));
    };
    const Side a = side(20, 4), b = side(10, 16);
    CHECK(a.facts().lines == 294);
    CHECK(a.facts().events == 0);
    const Comparison all = compare(a, b, {});
    CHECK(row(all, "launches").change.a == 20); // captured launches do not count
    CHECK(row(all, "launches").change.b == 10);
    CHECK(row(all, "grid-p50").change.b == 16);
    CHECK(row(all, "block-p95").change.a == 128);
    CHECK(row(all, "launch-time").change.a == Approx(0.0001)); // 20 calls of 5 us per second
    REQUIRE(all.kernels.size() == 1);
    CHECK(all.kernels[0].change.significant);

    // A recording of -e lines can be compared with one of table rows.
    const Side rows = recordings.side("cudalaunch", 14, {kernel("k", 20, 4)});
    CHECK(row(compare(a, rows, {}), "launches").change.difference == 0);

    const std::string_view lost = R"({"type":"lost","events_lost":3})"
                                  "\n";
    CHECK_THROWS_WITH(side(20, 4, lost), Catch::Matchers::ContainsSubstring("lost lines of -e"));
    CHECK_THROWS_WITH(recordings.side("ncclwait", 0, {}, Group::whole,
                                      R"({"type":"event","time_ns":1})"
                                      "\n"),
                      Catch::Matchers::ContainsSubstring("not compared"));
}

TEST_CASE("for each tool, a line of -e becomes the row that the tool's table would have")
{
    const auto value = [](std::string_view tool, std::string_view line, std::string_view key) {
        return row_of_event(tool, Record::parse(line).value()).value().number(key);
    };
    CHECK(value("cudalaunch", R"({"function":"cuGraphLaunch_ptsz"})", "graph_launches") == 1);
    CHECK_FALSE(value("cudalaunch", R"({"function":"cuGraphLaunch"})", "launches"));
    CHECK(value("cudalaunch", R"({"function":"cuLaunchKernel","result_code":700})", "errors") == 1);
    CHECK(value("cudamemcpy", R"({"kind":"H2D","bytes":7,"copies":2})", "copies") == 2);
    CHECK_FALSE(value("cudamemcpy", R"({"kind":"H2D","bytes":7,"result_code":1})", "bytes"));
    CHECK(value("cudasync", R"({"wait":"stream","latency_ns":9,"not_ready":1})", "total_ns") == 9);
    CHECK(value("gpualloc", R"({"operation":"alloc","bytes":7})", "allocated_bytes") == 7);
    CHECK(value("gpualloc", R"({"operation":"alloc","bytes":7,"result_code":2})", "failures") == 1);
    CHECK_FALSE(value("gpualloc", R"({"operation":"free","bytes":7})", "allocs"));
    CHECK(value("cudagraph", R"({"call":"launch","kernels":3})", "kernels_launched") == 3);
    CHECK_FALSE(row_of_event("cudagap", Record()));
}

TEST_CASE("malformed rows are ignored")
{
    Recordings files;
    const Side a =
        files.side("cudalaunch", 10, {kernel("k", 1, 1)}, Group::process,
                   "{\"type\":\"row\",\"interval_ns\":0,\"monotonic_ns\":5,\"launches\":1}\n"
                   "{\"type\":\"row\",\"interval_ns\":1e300,\"monotonic_ns\":1e308,\"launches\":1}\n"
                   "{\"type\":\"row\",\"interval_ns\":-1,\"monotonic_ns\":5e9,\"launches\":1}\n"
                   "{\"type\":\"row\",\"interval_ns\":1,\"monotonic_ns\":5e9,\"launches\":-7}\n"
                   "{\"type\":\"row\",\"interval_ns\":1,\"time\":\"x\",\"launches\":\"many\",\"kernel\":[1]}\n"
                   "{\"type\":\"lost\",\"run\":\"\",\"events_lost\":7}\n");
    CHECK(a.facts().lost == 7);
    CHECK(row(compare(a, a, {}), "launches").change.a == 1);
    CHECK_THROWS_AS(files.side("cudalaunch", 0, {}), Error);
    CHECK_THROWS_AS(files.side("", 3, {R"("launches":1)"}), Error);
}

TEST_CASE("number_text rounds to a readable length")
{
    CHECK(number_text(0) == "0");
    CHECK(number_text(1204.4) == "1,204");
    CHECK(number_text(1234567) == "1,234,567");
    CHECK(number_text(16.52) == "16.5");
    CHECK(number_text(1.234) == "1.23");
    CHECK(number_text(0.0312) == "0.0312");
}
