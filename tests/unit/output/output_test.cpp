// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
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
    auto cell = [](Unit unit, Cell value) {
        const Column column[] = {{"X", "x", unit, 1}};
        std::string text = text_of([&](Output& output) { output.event(column, {std::move(value)}, {}); });
        return text.substr(2, text.size() - 3);
    };
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    CHECK(cell(Unit::count, UINT64_MAX) == "18446744073709551615");
    CHECK(cell(Unit::count, INT64_MIN) == "-9223372036854775808");
    CHECK(cell(Unit::rate, nan) == "-");
    CHECK(cell(Unit::percent, -infinity) == "-");
    CHECK(cell(Unit::rate, 0.04) == "0.0");
    CHECK(cell(Unit::ns_as_us, uint64_t{0}) == "0.0");
    CHECK(cell(Unit::ns_as_us, uint64_t{49}) == "0.0");
    CHECK(cell(Unit::ns_as_us, uint64_t{50}) == "0.1");
    CHECK(cell(Unit::ns_as_us, uint64_t{99949}) == "99.9");
    CHECK(cell(Unit::ns_as_us, uint64_t{99950}) == "100");
    CHECK(cell(Unit::ns_as_us, uint64_t{100499}) == "100");
    CHECK(cell(Unit::ns_as_us, uint64_t{100500}) == "101");
    CHECK(cell(Unit::ns_as_us, UINT64_MAX) == "18446744073709552");
    CHECK(cell(Unit::ns_as_us, int64_t{-1500}) == "-1.5");
    CHECK(cell(Unit::ns_as_us, 1500.0) == "1.5");
    CHECK(cell(Unit::seconds, uint64_t{1500000499}) == "1.500000");
    CHECK(cell(Unit::seconds, uint64_t{1999999500}) == "2.000000");
    CHECK(cell(Unit::seconds, UINT64_MAX) == "18446744073.709552");
    CHECK(cell(Unit::bytes, 1536.0) == "1.5K");
    CHECK(cell(Unit::bytes, int64_t{-1536}) == "-1.5K");
    CHECK(cell(Unit::hex, UINT64_MAX) == "0xffffffffffffffff");
    CHECK(cell(Unit::hex, uint64_t{0}) == "0x0");
    CHECK(cell(Unit::dim3, Dim3{UINT32_MAX, 1, 0}) == "4294967295,1,0");
    CHECK(cell(Unit::count, "text") == "text");
    CHECK(cell(Unit::bytes, AtLeast{1536}) == ">=1.5K");
    CHECK(cell(Unit::count, AtLeast{0}) == ">=0");
    CHECK(cell(Unit::count, estimate_of(uint64_t{7})) == "~7");
    CHECK(cell(Unit::rate, estimate_of(1.25)) == "~1.2");
    CHECK(cell(Unit::bytes, estimate_of(uint64_t{1536})) == "~1.5K");
    CHECK(cell(Unit::count, estimate_of(Cell())) == "-");
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
    const std::string names[] = {
        "quote\"back\\slash/",
        std::string("nul\0in it", 9),
        "esc\x1b[2J\x07",
        "c1 \xc2\x9b"
        "31m",
        "raw c1 \x9b"
        "31m",
        "bidi \xe2\x80\xae\xe2\x81\xa6",
        "overlong \xc0\xaf\xe0\x80\xaf",
        "surrogate \xed\xa0\x80",
        "cut \xf0\x9f\x98",
        "too big \xf4\x90\x80\x80\xff\xfe",
        "fine \u00e9 \u4e2d \U0001F600",
        std::string(1 << 20, '"'),
        std::string(1 << 20, '\xff'),
        "{}%s%n",
    };
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
    CHECK(text.find("\xe2\x80\xae") == text.npos);

    auto records = json_of(use);
    REQUIRE(records.size() == std::size(names));
    for (size_t i : {0, 1, 2, 3, 5, 10, 11, 13})
        CHECK((records[i]["name"] == names[i]));
    CHECK(records[4]["name"] == "raw c1 \ufffd"
                                "31m");
    CHECK(records[8]["name"] == "cut \ufffd\ufffd\ufffd");
}

TEST_CASE("rows of the wrong length do not read past the end", "[output]")
{
    CHECK_THROWS(json_of([](Output& output) { output.event(columns, {uint64_t{1}}, {}); }));
    CHECK_THROWS(text_of([](Output& output) { output.event(columns, {uint64_t{1}}, {}); }));
}

TEST_CASE("flush writes everything to a slow non-blocking reader", "[output]")
{
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    Fd reading(ends[0]), writing(ends[1]);
    ::fcntl(writing.get(), F_SETPIPE_SZ, 4096);
    ::fcntl(writing.get(), F_SETFL, O_NONBLOCK);

    std::string got;
    std::thread reader([&] {
        char part[1000];
        for (ssize_t n; (n = ::read(reading.get(), part, sizeof part)) > 0;)
            got.append(part, static_cast<size_t>(n));
    });
    constexpr uint64_t count = 20000;
    {
        Redirect stdout_to(STDOUT_FILENO, writing.get());
        constexpr Column one[] = {{"N", "n"}};
        auto output = make_json_output();
        for (uint64_t i = 0; i < count; ++i)
            output->event(one, {i}, {});
        output->flush();
    }
    writing = Fd();
    {
        Fd closed(std::move(writing));
    }
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
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    Fd writing(ends[1]);
    ::close(ends[0]);
    bool closed = false, again = false;
    for (auto& output : {make_text_output(false), make_json_output()}) {
        Redirect stdout_to(STDOUT_FILENO, writing.get());
        output->event(std::span(columns, 1), {ten_o_clock}, {});
        try {
            output->flush();
        } catch (const OutputClosed&) {
            closed = true;
        }
        try {
            output->flush();
        } catch (const OutputClosed&) {
            again = true;
        }
    }
    CHECK(closed);
    CHECK_FALSE(again);
}

TEST_CASE("flush waits for a blocked reader until the run gives up, and reports lost lines", "[output]")
{
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const Fd reading(ends[0]), writing(ends[1]);
    Redirect stdout_to(STDOUT_FILENO, writing.get());
    auto output = make_text_output(false);
    int asked = 0;
    output->give_up_when([&](std::chrono::nanoseconds) { return ++asked == 3; });
    std::string what;
    try {
        for (uint64_t i = 0; i < 40000; ++i)
            output->event(std::span(columns, 1), {ten_o_clock}, {});
    } catch (const OutputStalled& error) {
        what = error.what();
    }
    CHECK(asked == 3);
    CHECK(what.find(" lines were not written") != std::string::npos);
    output->flush(); // the buffer is empty
    CHECK(asked == 3);
}

TEST_CASE("closed standard output throws an Error", "[output]")
{
    const Fd nothing(::open("/", O_PATH | O_CLOEXEC));
    Redirect stdout_to(STDOUT_FILENO, nothing.get());
    auto output = make_text_output(false);
    output->event(std::span(columns, 1), {ten_o_clock}, {});
    std::string what;
    try {
        output->flush();
    } catch (const Error& error) {
        what = error.what();
    }
    CHECK(what.find("standard output is closed") != std::string::npos);
}

TEST_CASE("a full disk throws an Error with the reason", "[output]")
{
    Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    std::string what;
    {
        Redirect stdout_to(STDOUT_FILENO, full.get());
        auto output = make_text_output(false);
        output->event(std::span(columns, 1), {ten_o_clock}, {});
        try {
            output->flush();
        } catch (const Error& error) {
            what = error.what();
        }
    }
    CHECK(what == "cannot write to standard output: No space left on device");
}

TEST_CASE("cells sort by number", "[output]")
{
    constexpr double infinity = std::numeric_limits<double>::infinity();
    CHECK(sort_value(Cell{}) == -infinity);
    CHECK(sort_value(std::numeric_limits<double>::quiet_NaN()) == -infinity);
    CHECK(sort_value(uint64_t{7}) == 7);
    CHECK(sort_value(int64_t{-7}) == -7);
    CHECK(sort_value(0.5) == 0.5);
    CHECK(sort_value(AtLeast{7}) == 7);
    CHECK(sort_value(estimate_of(7.5)) == 7.5);
    CHECK(sort_value("zzz") == 0);
    CHECK(sort_value(Dim3{2, 3, 4}) == 24);
}
