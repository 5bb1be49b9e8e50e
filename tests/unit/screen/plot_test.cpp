// SPDX-License-Identifier: Apache-2.0
#include "screen/history.hpp"
#include "tests/unit/screen/locale_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

using namespace gpusnoop;

namespace {

constexpr double gap = std::numeric_limits<double>::quiet_NaN();
using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("a plot in braille", "[plot]")
{
    const std::vector<double> values{1, 2, 3, 4, gap, 0, 8, 8};
    CHECK(plot(values, 4, 2, Glyphs::braille) == Lines{"   \u28ff", "\u28e0\u28fe\u2880\u28ff"});
    CHECK(plot(values, 2, 1, Glyphs::braille) == Lines{"\u2880\u28ff"}); // the newest values
    CHECK(plot(values, 6, 1, Glyphs::braille)[0].starts_with("  "));     // empty before the first value
}

TEST_CASE("a plot in ASCII", "[plot]")
{
    const std::vector<double> values{0, 4, 8, gap, 16};
    CHECK(plot(values, 5, 2, Glyphs::ascii) == Lines{"    :", "..: :"});
}

TEST_CASE("plots without values, without space, and of extreme values", "[plot]")
{
    for (Glyphs glyphs : {Glyphs::braille, Glyphs::ascii}) {
        CHECK(plot({}, 0, 0, glyphs).empty());
        CHECK(plot({}, 3, 1, glyphs) == Lines{"   "});
        CHECK(plot(std::vector{1.0}, -1, 1, glyphs) == Lines{""});
        CHECK(plot(std::vector{gap, gap}, 2, 1, glyphs) == Lines{"  "});
        const std::vector<double> odd{-5, std::numeric_limits<double>::infinity(), 1e308, 5e-324};
        CHECK(plot(odd, 4, 3, glyphs).size() == 3);
    }
    CHECK(largest(std::vector{gap, 1.0, -2.0}) == 1);
    CHECK(largest({}) == 0);
}

TEST_CASE("bars", "[plot]")
{
    CHECK(bar(0.5, 4) == "||  ");
    CHECK(bar(-1, 4) == "    ");
    CHECK(bar(7, 4) == "||||");
    CHECK(bar(gap, 2) == "  ");
    CHECK(bar(1, -3).empty());
}

TEST_CASE("plots use braille in UTF-8 locales and ASCII in others", "[plot]")
{
    const Locale utf8("C.UTF-8");
    CHECK(glyphs_of_locale() == Glyphs::braille);
    const Locale none("C");
    CHECK(glyphs_of_locale() == Glyphs::ascii);
}
