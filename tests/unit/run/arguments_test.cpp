// SPDX-License-Identifier: Apache-2.0
#include "run/command_line.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace gpusnoop;
using namespace std::chrono_literals;

TEST_CASE("time_argument: a number with a unit, or in the default unit")
{
    const auto time = [](std::string_view text, std::string_view usual = "s") {
        return time_argument("a time", text, usual, 0ns, 240h);
    };
    CHECK(time("5") == 5s);
    CHECK(time("0.25") == 250ms);
    CHECK(time("5", "us") == 5us);
    CHECK(time("1ms", "us") == 1ms);
    CHECK(time("1.5m") == 90s);
    CHECK(time("2h") == 2h);
    CHECK(time("1d") == 24h);
    CHECK(time("7ns") == 7ns);
    CHECK(time("1e3") == 1000s);
    CHECK(time("0") == 0s);
    for (const std::string_view text : {"", "s", "5 s", "5S", "5sec", "-1", "nan", "inf", "1e300", "241h", "0x5", "+5"})
        CHECK_THROWS_AS(time(text), UsageError);
}

TEST_CASE("time_argument: the error message names the range, examples and the text")
{
    std::string message;
    try {
        time_argument("an interval", "soon", "s", 10ms, 240h);
    } catch (const UsageError& error) {
        message = error.what();
    }
    CHECK(message == "an interval must be a time from 10ms to 10d, such as 5 (seconds), 250ms or 5m, not 'soon'");
}
