// SPDX-License-Identifier: Apache-2.0
// Captures the text that an output writes. Also contains a row with one cell of every kind.
#pragma once

#include "base/fd.hpp"
#include "output/compression.hpp"
#include "rows/output.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace gpusnoop::captured {

using nlohmann::json;

// While it exists, redirects a descriptor to another file.
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

inline std::string contents(const Fd& file)
{
    std::string text(static_cast<size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
    REQUIRE(::pread(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return text;
}

struct Written {
    std::string out, err;
};

// Calls `use` and returns the text written.
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

inline std::string unpacked(std::string_view packed)
{
    const auto unpacker = decompressor_for(packed);
    REQUIRE(unpacker);
    std::string text;
    while (unpacker->unpack(packed, text) == Decompressor::State::more) {}
    return text;
}

// 2026-01-01 10:00:00.123456 UTC
inline constexpr uint64_t ten_o_clock = 1767261600'123456789;

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

inline constexpr Column columns[] = {
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

inline const Row full_row = {ten_o_clock,    uint64_t{1234},       std::string("python3"), uint64_t{1000},
                             12.345,         uint64_t{12345678},   uint64_t{1234},         99.95,
                             Dim3{64, 2, 1}, uint64_t{0x7f00dead}, uint64_t{4294967296},   "void k<int>",
                             "note"};
inline const Row empty_row(std::size(columns));

} // namespace gpusnoop::captured
