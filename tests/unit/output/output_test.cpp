// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/base/error_of.hpp"
#include "tests/unit/base/pipe.hpp"
#include "tests/unit/output/captured.hpp"

#include <algorithm>
#include <csignal>
#include <limits>
#include <thread>

using namespace gpusnoop;
using namespace gpusnoop::captured;

TEST_CASE("text table", "[output]")
{
    Zone zone("UTC");
    auto use = [](Output& output) {
        output.start("cudatop", "1.0", std::nullopt);
        output.attached(3, 1, "multi", {});
        for (int i = 0; i < 2; ++i) {
            output.begin_table(columns, ten_o_clock + static_cast<uint64_t>(i) * 1000000000, 1000000000);
            output.row(columns, full_row, {});
            output.row(columns, empty_row, {});
        }
        output.end(5);
    };
    const std::string table =
        "TIME         PID COMM             LAUNCHES   RATE/s   BYTES LAT(us) BUSY% GRID       STREAM     "
        "KERNEL               NOTE\n"
        "10:00:00    1234 python3              1000     12.3   11.8M     1.2 100.0 64,2,1     0x7f00dead "
        "void k<int>          note\n"
        "-              - -                       -        -       -       -     - -          -          "
        "-                    -\n";
    CHECK(text_of(use) == table + "\n" + table);
    CHECK(text_of(use, true) == "10:00:00\n" + table + "\n10:00:01\n" + table);
}

TEST_CASE("columns line up below wide and combining characters", "[output]")
{
    static constexpr Column two[] = {{"COMM", "comm", Unit::text, 6}, {"N", "n", Unit::count, 3}};
    auto use = [](Output& output) {
        output.begin_table(two, ten_o_clock, 1000000000);
        for (const char* name : {"plain", "\u4e2d\u6587", "e\u0301e\u0301", "\U0001F600!", "\u4e2d\u6587\u4e2d\u6587"})
            output.row(two, {std::string(name), uint64_t{7}}, {});
    };
    CHECK(text_of(use) == "COMM     N\n"
                          "plain    7\n"
                          "\u4e2d\u6587     7\n"
                          "e\u0301e\u0301       7\n"
                          "\U0001F600!      7\n"
                          "\u4e2d\u6587+    7\n");
}

TEST_CASE("an empty report is printed as a sentence", "[output]")
{
    Zone zone("UTC");
    constexpr Column one[] = {{"N", "n", Unit::count, 3}};
    int asked = 0;
    const auto nothing = [&asked] {
        asked++;
        return std::string("no launch\x1b in 1 s");
    };
    auto use = [&](Output& output) {
        for (uint64_t i = 0; i < 3; ++i) {
            const uint64_t now = ten_o_clock + i * 1000000000;
            output.begin_table(one, now, 1000000000);
            if (i == 1)
                output.row(one, {uint64_t{7}}, {});
            output.end_report(nothing, now);
        }
        output.histogram("", "usecs", Histogram(), {}, ten_o_clock);
        output.end_report(nothing, ten_o_clock + 3000000000);
    };
    CHECK(text_of(use) == "no launch\\x1B in 1 s\n\n  N\n  7\n\nno launch\\x1B in 1 s\n\nno launch\\x1B in 1 s\n");
    CHECK(text_of(use, true).starts_with("10:00:00\nno launch\\x1B in 1 s\n\n10:00:01\n  N\n  7\n"));
    asked = 0;
    CHECK(json_of(use).size() == 2); // one row and one histogram
    CHECK(asked == 0);
    CHECK(text_of([&](Output& output) {
              output.event(one, {uint64_t{7}}, {});
              output.end_report(nothing, ten_o_clock);
          }) == "  N\n  7\n");
}

TEST_CASE("text events have one header", "[output]")
{
    constexpr Column few[] = {{"PID", "pid", Unit::count, 7}, {"COMM", "comm", Unit::text, 5}, {"N", "n"}};
    CHECK(text_of([&](Output& output) {
              output.event(few, {uint64_t{1}, "a", uint64_t{7}}, {});
              output.event(few, {int64_t{-1}, "longer", uint64_t{123456789}}, {});
              output.event(few, {uint64_t{1}, "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", {}},
                           std::vector<std::string>{"main", "f\x1b[31m"});
          }) == "    PID COMM         N\n"
                "      1 a            7\n"
                "     -1 long+ 123456789\n"
                "      1 \u00e9\u00e9\u00e9\u00e9+        -\n"
                "    main\n"
                "    f\\x1B[31m\n");
}

TEST_CASE("text leaves no trailing spaces", "[output]")
{
    static constexpr Column two[] = {
        {"A", "a", Unit::text, 4}, {"B", "b", Unit::text, 9}, {"C", "c", Unit::count, 3, false}};
    CHECK(text_of([&](Output& output) {
              output.event(two, {"x", "", uint64_t{1}}, {});
              output.event(two, {"", "y ", uint64_t{1}}, {});
              output.event(two, {"", "", uint64_t{1}}, {});
          }) == "A    B\nx\n     y\n\n");
}

TEST_CASE("text numbers", "[output]")
{
    // Prints each value in a row of its own.
    auto cells = [](Unit unit, const std::vector<Cell>& values) {
        const Column column[] = {{"X", "x", unit, 1}};
        std::string text = text_of([&](Output& output) {
            for (const Cell& value : values)
                output.event(column, {value}, {});
        });
        std::ranges::replace(text, '\n', ' ');
        return text.substr(2);
    };
    constexpr double infinity = std::numeric_limits<double>::infinity();
    CHECK(cells(Unit::count, {UINT64_MAX, INT64_MIN, "text", AtLeast{0}, estimate_of(7UL), estimate_of(Cell())}) ==
          "18446744073709551615 -9223372036854775808 text >=0 ~7 - ");
    CHECK(cells(Unit::rate, {0.04, estimate_of(1.25), std::numeric_limits<double>::quiet_NaN()}) == "0.0 ~1.2 - ");
    CHECK(cells(Unit::percent, {-infinity}) == "- ");
    CHECK(cells(Unit::ns_as_us, {0UL, 49UL, 50UL, 99949UL, 99950UL, 100499UL, 100500UL, UINT64_MAX, -1500L, 1500.0}) ==
          "0.0 0.0 0.1 99.9 100 100 101 18446744073709552 -1.5 1.5 ");
    CHECK(cells(Unit::seconds, {1500000499UL, 1999999500UL, UINT64_MAX}) == "1.500000 2.000000 18446744073.709552 ");
    CHECK(cells(Unit::bytes, {1536.0, -1536L, AtLeast{1536}, estimate_of(1536UL)}) == "1.5K -1.5K >=1.5K ~1.5K ");
    CHECK(cells(Unit::hex, {UINT64_MAX, 0UL}) == "0xffffffffffffffff 0x0 ");
    CHECK(cells(Unit::dim3, {Dim3{UINT32_MAX, 1, 0}}) == "4294967295,1,0 ");
}

TEST_CASE("text histograms", "[output]")
{
    Zone zone("UTC");
    Histogram histogram;
    for (unsigned v = 1; v <= 3; ++v)
        histogram.add(histogram_bucket(v), 1);
    auto use = [&](Output& output) {
        output.histogram("pid = 1", "usecs", histogram, {}, ten_o_clock);
        output.histogram("empty", "usecs", Histogram(), {}, ten_o_clock);
        output.histogram("pid = 2", "usecs", histogram, {}, ten_o_clock);
        output.histogram("", "usecs", histogram, {}, ten_o_clock + 1000000000);
    };
    const std::string stars = "     usecs               : count    distribution\n"
                              "         0 -> 1          : 1        |********************                    |\n"
                              "         2 -> 3          : 2        |****************************************|\n"
                              "p50 = 2, p95 = 3, p99 = 3 usecs\n";
    CHECK(text_of(use) == "pid = 1\n" + stars + "\npid = 2\n" + stars + "\n" + stars);
    CHECK(text_of(use, true) == "10:00:00\npid = 1\n" + stars + "\npid = 2\n" + stars + "\n10:00:01\n" + stars);
}

TEST_CASE("losses go to stderr, and in JSON to stdout as well", "[output]")
{
    const Loss losses[] = {{"events_lost", "events lost (ring buffer full)", 3}, {"evicted", "entries evicted", 0}};
    const Loss none[] = {{"events_lost", "events lost", 0}};
    auto use = [&](Output& output) {
        output.lost(losses);
        output.lost(none);
    };
    set_tool_name("cudatop");
    Written text = written(make_text_output(false), use);
    Written as_json = written(make_json_output(), use);
    set_tool_name("gpusnoop");
    CHECK(text.out.empty());
    CHECK(text.err == "cudatop: 3 events lost (ring buffer full)\n");
    CHECK(as_json.err == text.err);
    CHECK(as_json.out == "{\"type\":\"lost\",\"events_lost\":3}\n");
}

TEST_CASE("a warning is printed on one line, with control characters escaped", "[output]")
{
    CHECK(written(make_text_output(false), [](Output&) {
              warn("a\nb\x1b");
              verbose("not shown");
              set_verbosity(1);
              verbose("shown");
              set_verbosity(0);
          }).err == "gpusnoop: a\\x0Ab\\x1B\ngpusnoop: shown\n");
    CHECK(errno_text(EACCES) == "Permission denied");
}

TEST_CASE("hostile names break neither text nor JSON", "[output]")
{
    // tests/unit/base/text_test.cpp has all kinds of invalid UTF-8.
    const std::string names[] = {"quote\"back\\slash/",
                                 std::string("nul\0in it", 9),
                                 "esc\x1b[2J\x07",
                                 "fine \u00e9 \u4e2d \U0001F600",
                                 std::string(1 << 20, '"'),
                                 "{}%s%n",
                                 "raw c1 \x9bm",
                                 std::string(1 << 20, '\xff')};
    constexpr Column one[] = {{"COMM", "comm", Unit::text, 16}, {"NAME", "name", Unit::text, 8}};
    auto use = [&](Output& output) {
        for (const std::string& name : names)
            output.event(one, {name, name}, {});
    };

    const std::string text = text_of(use);
    CHECK(std::count(text.begin(), text.end(), '\n') == std::ssize(names) + 1);
    CHECK(std::none_of(text.begin(), text.end(),
                       [](char c) { return c != '\n' && (c == 0x7f || (c >= 0 && c < 0x20)); }));
    CHECK(text.find('\x9b') == text.npos);

    auto records = json_of(use);
    REQUIRE(records.size() == std::size(names));
    for (size_t i = 0; i < 6; i++)
        CHECK((records[i]["name"] == names[i]));
    CHECK(records[6]["name"] == "raw c1 \ufffdm");
}

TEST_CASE("rows of the wrong length do not read past the end", "[output]")
{
    CHECK_THROWS(json_of([](Output& output) { output.event(columns, {uint64_t{1}}, {}); }));
    CHECK_THROWS(text_of([](Output& output) { output.event(columns, {uint64_t{1}}, {}); }));
}

TEST_CASE("flush writes everything to a slow non-blocking reader", "[output]")
{
    Ends pipe = pipe_ends();
    ::fcntl(pipe.writing.get(), F_SETPIPE_SZ, 4096);
    ::fcntl(pipe.writing.get(), F_SETFL, O_NONBLOCK);

    std::string got;
    std::thread reader([&] {
        char part[1000];
        for (ssize_t n; (n = ::read(pipe.reading.get(), part, sizeof part)) > 0;)
            got.append(part, static_cast<size_t>(n));
    });
    constexpr uint64_t count = 20000;
    {
        Redirect stdout_to(STDOUT_FILENO, pipe.writing.get());
        constexpr Column one[] = {{"N", "n"}};
        auto output = make_json_output();
        for (uint64_t i = 0; i < count; ++i)
            output->event(one, {i}, {});
        output->flush();
    }
    pipe.writing = Fd();
    reader.join();

    std::istringstream lines(got);
    uint64_t next = 0;
    for (std::string line; std::getline(lines, line); ++next)
        if (json::parse(line)["n"] != next)
            break;
    CHECK(next == count);
}

TEST_CASE("the buffer is flushed when it exceeds 64 KiB", "[output]")
{
    Fd file(::memfd_create("out", MFD_CLOEXEC));
    {
        Redirect stdout_to(STDOUT_FILENO, file.get());
        constexpr Column one[] = {{"N", "n"}};
        auto output = make_text_output(false);
        for (uint64_t i = 0; i < 20000; ++i)
            output->event(one, {i}, {});
    }
    CHECK(contents(file).size() > 100000);
}

TEST_CASE("a closed pipe throws OutputClosed, only once", "[output]")
{
    ::signal(SIGPIPE, SIG_IGN);
    Ends pipe = pipe_ends();
    pipe.reading = Fd();
    std::string closed;
    for (const auto& output : {make_text_output(false), make_json_output()}) {
        Redirect stdout_to(STDOUT_FILENO, pipe.writing.get());
        output->event(std::span(columns, 1), {ten_o_clock}, {});
        for (int i = 0; i < 2; i++)
            try {
                output->flush();
                closed += "-";
            } catch (const OutputClosed&) {
                closed += "x";
            }
    }
    CHECK(closed == "x-x-");
}

TEST_CASE("flush waits for a blocked reader until the run gives up, and reports lost lines", "[output]")
{
    const Ends pipe = pipe_ends();
    Redirect stdout_to(STDOUT_FILENO, pipe.writing.get());
    auto output = make_text_output(false);
    int asked = 0;
    output->give_up_when([&](std::chrono::nanoseconds) { return ++asked == 3; });
    const std::string what = error_of([&] {
        for (uint64_t i = 0; i < 40000; ++i)
            output->event(std::span(columns, 1), {ten_o_clock}, {});
    });
    CHECK(asked == 3);
    CHECK(what.find(" lines were not written") != std::string::npos);
    output->flush(); // the buffer is empty
    CHECK(asked == 3);
}

TEST_CASE("closed standard output and a full disk throw an Error with the reason", "[output]")
{
    const auto reason = [](const char* path, int flags) {
        const Fd file(::open(path, flags | O_CLOEXEC));
        Redirect stdout_to(STDOUT_FILENO, file.get());
        auto output = make_text_output(false);
        output->event(std::span(columns, 1), {ten_o_clock}, {});
        return error_of([&] { output->flush(); });
    };
    CHECK(reason("/", O_PATH).find("standard output is closed") != std::string::npos);
    CHECK(reason("/dev/full", O_WRONLY) == "cannot write to standard output: No space left on device");
}

TEST_CASE("cells sort by number", "[output]")
{
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::vector<Cell> cells = {
        Cell{},       std::numeric_limits<double>::quiet_NaN(), 7UL, -7L, 0.5, AtLeast{7}, estimate_of(7.5), "zzz",
        Dim3{2, 3, 4}};
    std::vector<double> values;
    std::ranges::transform(cells, std::back_inserter(values), sort_value);
    CHECK(values == std::vector<double>{-infinity, -infinity, 7, -7, 0.5, 7, 7.5, 0, 24});
}
