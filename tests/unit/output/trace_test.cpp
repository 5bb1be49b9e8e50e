// SPDX-License-Identifier: Apache-2.0
// Timeline files: events are valid JSON for any names, have timestamps relative to the right time base, and are
// readable in truncated files.
#include "base/clock.hpp"
#include "base/error.hpp"
#include "output/trace_output.hpp"
#include "tests/unit/base/folder.hpp"
#include "tests/unit/output/captured.hpp"

using namespace gpusnoop;
using captured::json;

namespace {

constexpr Column columns[] = {{"", "time_ns", Unit::seconds},
                              {"PID", "pid"},
                              {"TID", "tid"},
                              {"COMM", "comm", Unit::text},
                              {"", "pod", Unit::text},
                              {"", "namespace", Unit::text},
                              {"GRID", "grid", Unit::dim3},
                              {"LAT(us)", "latency_ns", Unit::ns_as_us},
                              {"", "kernel", Unit::text},
                              {"KERNEL", "", Unit::text},
                              {"STREAM", "stream", Unit::hex}};
const std::string hostile = "\"},{\"ph\":\"\x1b[31m\\\xff\n";

Row launch(uint64_t time_ns, uint64_t tid, const Cell& latency, const std::string& kernel = "k<int>")
{
    return {time_ns, 7UL, tid, "train", "p", "ns", Dim3{4, 1, 1}, latency, kernel, kernel, 0x7f00UL};
}

// Parses a JSON list whose end may be missing, as trace viewers do.
json parsed(std::string text)
{
    while (!text.empty() && text.back() != '}' && text.back() != ']')
        text.pop_back();
    if (!text.ends_with(']'))
        text += ']';
    return json::parse(text);
}

json events_of(const std::function<void(TraceEvents&, std::string&)>& use)
{
    TraceEvents events("cudalaunch", captured::ten_o_clock, 1000);
    std::string text;
    use(events, text);
    return parsed("[" + text);
}

void trace(const std::string& path, const std::function<void(Output&)>& use)
{
    std::vector<SideOutput> sides;
    sides.push_back(make_trace_output(path));
    const auto output = make_output_with_sides(make_silent_output(), std::move(sides));
    output->start("cudalaunch", "1.0", std::nullopt);
    use(*output);
    output->flush();
}

} // namespace

TEST_CASE("a call is a complete event on the track of its thread", "[timeline]")
{
    const json all = events_of([](TraceEvents& events, std::string& text) {
        CHECK(events.append(text, columns, launch(3500, 8, 2001UL), {}));
        CHECK(events.append(text, columns, launch(9000, 8, Cell()), std::vector<std::string>{"f", "main"}));
        CHECK_FALSE(events.append(text, columns, {Cell(), 1UL}, {}));
    });
    REQUIRE(all.size() == 5);
    CHECK(all[0].at("name") == "process_name");
    CHECK(all[0].at("args").at("name") == "train");
    CHECK(all[1].at("args").at("labels") == "ns/p");
    CHECK(all[2].at("name") == "thread_name");
    CHECK(all[2].at("tid") == 8);
    CHECK(all[3].at("ph") == "X");
    CHECK(all[3].at("name") == "k<int>");
    CHECK(all[3].at("dur") == 2.001);
    CHECK(all[3].at("args") == json::parse(R"({"grid":[4,1,1],"kernel":"k<int>","stream":"0x7f00"})"));
    CHECK(all[4].at("ph") == "i");
    CHECK(all[4].at("args").at("frames") == "f\nmain");
    const double us = static_cast<double>(captured::ten_o_clock + 2500 - trace_base_ns(captured::ten_o_clock)) / 1e3;
    CHECK(std::abs(all[3].at("ts").get<double>() - us) < 0.01);
}

// The base is a multiple of 7889238 s (trace_base_ns()). 10 o'clock is 1767261600 s = 224 * 7889238 s + 72288 s.
TEST_CASE("a trace has the time base of PyTorch's traces", "[timeline]")
{
    CHECK(trace_base_ns(captured::ten_o_clock) == 1767189312'000'000'000);
}

TEST_CASE("names are escaped, and a reused pid gets the name of its new process", "[timeline]")
{
    const json all = events_of([](TraceEvents& events, std::string& text) {
        Row row = launch(3500, 8, 1UL, hostile);
        row[3] = hostile;
        events.append(text, columns, row, std::vector<std::string>{hostile});
        row[3] = std::string("next");
        events.append(text, columns, row, {});
    });
    REQUIRE(all.size() == 6); // events: names of process, pod and thread; a call; the thread's new name; a call
    CHECK(all[3].at("name") == "\"},{\"ph\":\"\x1b[31m\\\xef\xbf\xbd\n");
    CHECK(all[4].at("args").at("name") == "next");
}

TEST_CASE("waits of a rank are asynchronous events, which may overlap", "[timeline]")
{
    const Column line[] = {{"", "time_ns"},        {"", "pid"},       {"", "tid"},
                           {"", "op", Unit::text}, {"", "offset_ns"}, {"", "skew_ns"}};
    const json all = events_of([&](TraceEvents& events, std::string& text) {
        for (const uint64_t at : {1000, 2000})
            events.append(text, line, {at, 7UL, 7UL, "AllReduce", 1000UL, 6000UL}, {});
    });
    REQUIRE(all.size() == 6);
    for (const size_t i : {2, 4}) {
        CHECK(all[i].at("ph") == "b");
        CHECK(all[i + 1].at("ph") == "e");
        CHECK(all[i].at("id") == all[i + 1].at("id"));
        CHECK(std::abs(all[i + 1].at("ts").get<double>() - all[i].at("ts").get<double>() - 5) < 0.01);
    }
    CHECK(all[2].at("id") != all[4].at("id"));
}

TEST_CASE("a gap is named by its main reason", "[timeline]")
{
    const Column line[] = {
        {"", "time_ns"}, {"", "pid"}, {"", "tid"}, {"GAP(us)", "gap_ns"}, {"", "block_reason", Unit::text}};
    const json all = events_of([&](TraceEvents& events, std::string& text) {
        events.append(text, line, {2000UL, 7UL, 7UL, 500UL, "pipe"}, {});
        events.append(text, line, {2000UL, 7UL, 7UL, 500UL, Cell()}, {});
    });
    CHECK(all[2].at("name") == "gap (pipe)");
    CHECK(all[2].at("dur") == 0.5);
    CHECK(all[3].at("name") == "gap");
}

TEST_CASE("a truncated trace can be read", "[timeline]")
{
    const Folder folder;
    const std::string plain = folder.file("a"), packed = folder.file("a.gz");
    for (const std::string& path : {plain, packed}) {
        for (int run = 0; run < 2; run++) // the second run replaces the file of the first
            trace(path, [](Output& output) {
                for (uint64_t i = 0; i < 5000; i++)
                    output.event(columns, launch(clock_ns(CLOCK_MONOTONIC), 8, i), {});
                const Loss loss{"events_lost", "events lost", 3};
                output.lost({&loss, 1});
                output.end(5);
            });
        const std::string text = path == packed ? captured::unpacked(contents(path)) : contents(path);
        const json all = json::parse(text);
        REQUIRE(all.size() == 1 + 3 + 5000 + 1 + 1);
        CHECK(all[0].at("args").at("baseTimeNanoseconds") == trace_base_ns(clock_ns(CLOCK_REALTIME)));
        CHECK(all[5004].at("name") == "3 events lost");
        CHECK(parsed(text.substr(0, text.rfind("},\n", text.size() / 2) + 1)).size() > 2000);
    }
    trace(plain, [](Output& output) { output.event(columns, launch(1, 8, 1UL), {}); }); // killed before the end
    CHECK(parsed(contents(plain)).size() == 1 + 3 + 1);
}

TEST_CASE("a trace replaces only a trace", "[timeline]")
{
    const Folder folder;
    const std::string path = folder.file("a", "import torch\n");
    CHECK_THROWS_AS(make_trace_output(path), Error);
    CHECK(contents(path) == "import torch\n");
}
