// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include "error.hpp"
#include "fd.hpp"

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;
using nlohmann::json;

namespace {

// Puts another file in the place of a descriptor for as long as it lives.
class Redirect {
public:
    Redirect(int fd, int to) : fd_(fd), before_(::fcntl(fd, F_DUPFD_CLOEXEC, 3)) { ::dup2(to, fd); }
    Redirect(const Redirect&) = delete;
    Redirect& operator=(const Redirect&) = delete;
    ~Redirect() { ::dup2(before_.get(), fd_); }

private:
    int fd_;
    Fd before_;
};

std::string contents(const Fd& file)
{
    std::string text(static_cast<size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
    REQUIRE(::pread(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return text;
}

struct Written {
    std::string out, err;
};

// What `use` makes the output write.
template<typename Use>
Written written(std::unique_ptr<Output> output, Use use)
{
    Fd out(::memfd_create("out", MFD_CLOEXEC)), err(::memfd_create("err", MFD_CLOEXEC));
    {
        Redirect stdout_to(STDOUT_FILENO, out.get()), stderr_to(STDERR_FILENO, err.get());
        use(*output);
        output->flush();
    }
    return {contents(out), contents(err)};
}

template<typename Use>
std::string text_of(Use use, bool timestamps = false)
{
    return written(make_text_output(timestamps), use).out;
}

template<typename Use>
std::vector<json> json_of(Use use)
{
    std::vector<json> records;
    std::istringstream lines(written(make_json_output(), use).out);
    for (std::string line; std::getline(lines, line);)
        records.push_back(json::parse(line));
    return records;
}

// 2026-01-01 10:00:00.123456 UTC
constexpr uint64_t ten_o_clock = 1767261600'123456789;

struct Zone {
    explicit Zone(const char* name)
    {
        ::setenv("TZ", name, 1);
        ::tzset();
    }
    Zone(const Zone&) = delete;
    Zone& operator=(const Zone&) = delete;
    ~Zone()
    {
        ::unsetenv("TZ");
        ::tzset();
    }
};

constexpr Column columns[] = {
    {"TIME", "time", Unit::time, 8},
    {"PID", "pid", Unit::count, 7},
    {"COMM", "comm", Unit::text, 16},
    {"LAUNCHES", "launches", Unit::count, 8},
    {"RATE/s", "launches_per_second", Unit::rate, 8},
    {"BYTES", "bytes", Unit::bytes, 7},
    {"LAT(us)", "latency_ns", Unit::ns_as_us, 7},
    {"BUSY%", "busy_percent", Unit::percent, 5},
    {"GRID", "grid", Unit::dim3, 10},
    {"STREAM", "stream", Unit::hex, 10},
    {"CGROUP", "cgroup", Unit::count, 8, false, true},
    {"KERNEL", "kernel", Unit::text, 20},
    {"NOTE", "note", Unit::text, 8, true, false},
};

const Row full_row = {ten_o_clock,    uint64_t{1234},       std::string("python3"), uint64_t{1000},
                      12.345,         uint64_t{12345678},   uint64_t{1234},         99.95,
                      Dim3{64, 2, 1}, uint64_t{0x7f00dead}, uint64_t{4294967296},   "void k<int>",
                      "note"};
const Row empty_row(std::size(columns));

} // namespace

TEST_CASE("text table", "[output]")
{
    Zone zone("UTC");
    auto use = [](Output& output) {
        output.start("cudatop", "1.0");
        output.attached(3, 1, "multi");
        for (int i = 0; i < 2; ++i) {
            output.begin_table(columns, ten_o_clock + static_cast<uint64_t>(i) * 1000000000, 1000000000);
            output.row(columns, full_row);
            output.row(columns, empty_row);
            output.end_table();
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

TEST_CASE("text events have one header", "[output]")
{
    constexpr Column few[] = {{"PID", "pid", Unit::count, 7}, {"COMM", "comm", Unit::text, 5}, {"N", "n"}};
    CHECK(text_of([&](Output& output) {
              output.event(few, {uint64_t{1}, "a", uint64_t{7}});
              output.event(few, {int64_t{-1}, "longer", uint64_t{123456789}});
              output.event(few, {uint64_t{1}, "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", {}});
              output.stack({}, std::vector<std::string>{"main", "f\x1b[31m"});
          }) == "    PID COMM         N\n"
                "      1 a            7\n"
                "     -1 long+ 123456789\n"
                "      1 \u00e9\u00e9\u00e9\u00e9+        -\n"
                "    main\n"
                "    f\\x1B[31m\n");
}

TEST_CASE("text leaves no trailing spaces", "[output]")
{
    constexpr Column two[] = {{"A", "a", Unit::text, 4}, {"B", "b", Unit::text, 9}, {"C", "c", Unit::count, 3, false}};
    CHECK(text_of([&](Output& output) {
              output.event(two, {"x", "", uint64_t{1}});
              output.event(two, {"", "y ", uint64_t{1}});
              output.event(two, {"", "", uint64_t{1}});
          }) == "A    B\nx\n     y\n\n");
}

TEST_CASE("text numbers", "[output]")
{
    auto cell = [](Unit unit, Cell value) {
        const Column column[] = {{"X", "x", unit, 1}};
        std::string text = text_of([&](Output& output) { output.event(column, {std::move(value)}); });
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

TEST_CASE("warnings are one harmless line", "[output]")
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

TEST_CASE("JSON records", "[output]")
{
    Zone zone("UTC");
    Histogram histogram;
    histogram.add(histogram_bucket(3), 4);
    histogram.add(histogram_bucket(1000), 1);
    const std::pair<std::string_view, Cell> fields[] = {{"pid", uint64_t{7}}, {"comm", "a\"b"}, {"tid", std::monostate{}}};
    const Written result = written(make_json_output(), [&](Output& output) {
        output.start("cudatop", "1.0");
        output.attached(12, 2, "session");
        output.begin_table(columns, ten_o_clock, 1000000000);
        output.row(columns, full_row);
        output.row(columns, empty_row);
        output.end_table();
        output.event(columns, full_row);
        output.histogram("pid = 7", "usecs", histogram, fields, ten_o_clock);
        output.histogram("", "usecs", Histogram(), {}, ten_o_clock);
        output.stack(fields, std::vector<std::string>{"main", "f\n"});
        output.stack({}, {});
        output.end(5);
    });
    const std::string cells = R"("pid":1234,"comm":"python3","launches":1000,"launches_per_second":12.345,)"
                              R"("bytes":12345678,"latency_ns":1234,"busy_percent":99.95,"grid":[64,2,1],)"
                              R"("stream":"0x7f00dead","cgroup":4294967296,"kernel":"void k<int>"})";
    const std::string time = R"("time":"2026-01-01T10:00:00.123456+0000",)";
    CHECK(result.out ==
          "{\"type\":\"start\",\"tool\":\"cudatop\",\"version\":\"1.0\",\"schema\":1}\n"
          "{\"type\":\"attached\",\"functions\":12,\"files\":2,\"tier\":\"session\"}\n"
          "{\"type\":\"row\"," +
              time + "\"interval_ns\":1000000000," + time + cells +
              "\n"
              "{\"type\":\"row\"," +
              time +
              "\"interval_ns\":1000000000}\n"
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
              "{\"type\":\"stack\",\"pid\":7,\"comm\":\"a\\\"b\",\"frames\":[\"main\",\"f\\u000a\"]}\n"
              "{\"type\":\"stack\",\"frames\":[]}\n"
              "{\"type\":\"end\",\"duration_ns\":5}\n");
    CHECK(result.err.empty());
}

TEST_CASE("JSON has local time with its offset", "[output]")
{
    Zone zone("<+0530>-5:30");
    auto use = [](Output& output) {
        for (uint64_t wall_ns : {ten_o_clock, ten_o_clock + 900000, ten_o_clock + 1000000000, uint64_t{0}})
            output.event(std::span(columns, 1), {wall_ns});
    };
    auto records = json_of(use);
    REQUIRE(records.size() == 4);
    CHECK(records[0]["time"] == "2026-01-01T15:30:00.123456+0530");
    CHECK(records[1]["time"] == "2026-01-01T15:30:00.124356+0530");
    CHECK(records[2]["time"] == "2026-01-01T15:30:01.123456+0530");
    CHECK(records[3]["time"] == "1970-01-01T05:30:00.000000+0530");
}

TEST_CASE("JSON numbers", "[output]")
{
    auto cell = [](Unit unit, Cell value) {
        const Column column[] = {{"X", "x", unit, 1}};
        auto records = json_of([&](Output& output) { output.event(column, {std::move(value)}); });
        return records.at(0).contains("x") ? records[0]["x"].dump() : "none";
    };
    CHECK(cell(Unit::count, UINT64_MAX) == "18446744073709551615");
    CHECK(cell(Unit::count, INT64_MIN) == "-9223372036854775808");
    CHECK(cell(Unit::ns_as_us, UINT64_MAX) == "18446744073709551615");
    CHECK(cell(Unit::bytes, int64_t{-5}) == "-5");
    CHECK(cell(Unit::hex, UINT64_MAX) == "\"0xffffffffffffffff\"");
    CHECK(cell(Unit::hex, int64_t{-1}) == "\"0xffffffffffffffff\"");
    CHECK(cell(Unit::rate, std::numeric_limits<double>::quiet_NaN()) == "none");
    CHECK(cell(Unit::rate, std::numeric_limits<double>::infinity()) == "none");
    CHECK(cell(Unit::rate, 0.0) == "0");
    CHECK(cell(Unit::rate, -0.0001) == "0");
    CHECK(cell(Unit::rate, 100.0) == "100");
    CHECK(cell(Unit::rate, 1.0005001) == "1.001");
    CHECK(cell(Unit::rate, 1e300) == "1e+300");
    CHECK(json::parse(cell(Unit::rate, std::numeric_limits<double>::max())) == std::numeric_limits<double>::max());
    CHECK(json::parse(cell(Unit::rate, -123456789012345.678)) == -123456789012345.672);
}

TEST_CASE("hostile names break neither output", "[output]")
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
            output.event(one, {name, name});
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
    CHECK_THROWS(json_of([](Output& output) { output.event(columns, {uint64_t{1}}); }));
    CHECK_THROWS(text_of([](Output& output) { output.event(columns, {uint64_t{1}}); }));
}

TEST_CASE("flush writes everything in spite of a slow non-blocking reader", "[output]")
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
            output->event(one, {i});
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

TEST_CASE("the buffer goes out by itself above 64 KiB", "[output]")
{
    Fd file(::memfd_create("out", MFD_CLOEXEC));
    {
        Redirect stdout_to(STDOUT_FILENO, file.get());
        constexpr Column one[] = {{"N", "n"}};
        auto output = make_text_output(false);
        for (uint64_t i = 0; i < 20000; ++i)
            output->event(one, {i});
    }
    CHECK(contents(file).size() > 100000);
}

TEST_CASE("a closed pipe is OutputClosed, once", "[output]")
{
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    Fd writing(ends[1]);
    ::close(ends[0]);
    bool closed = false, again = false;
    for (auto& output : {make_text_output(false), make_json_output()}) {
        Redirect stdout_to(STDOUT_FILENO, writing.get());
        output->event(std::span(columns, 1), {ten_o_clock});
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

TEST_CASE("a full disk is an Error with its reason", "[output]")
{
    Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    std::string what;
    {
        Redirect stdout_to(STDOUT_FILENO, full.get());
        auto output = make_text_output(false);
        output->event(std::span(columns, 1), {ten_o_clock});
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
    CHECK(sort_value("zzz") == 0);
    CHECK(sort_value(Dim3{2, 3, 4}) == 24);
}
