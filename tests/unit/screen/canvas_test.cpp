// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "screen/canvas.hpp"
#include "tests/unit/screen/locale_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace gpusnoop;

namespace {

// Returns true if every wide character is followed by its right half, and no other character is.
bool is_whole(const Canvas& canvas)
{
    for (int y = 0; y < canvas.lines(); ++y) {
        const auto line = canvas.line(y);
        for (size_t x = 0; x < line.size(); ++x) {
            const bool half = line[x].width == 0;
            const bool behind_wide = x > 0 && line[x - 1].width == 2;
            if (half != behind_wide)
                return false;
        }
        if (line.back().width == 2)
            return false;
    }
    return true;
}

} // namespace

TEST_CASE("text is clipped", "[canvas]")
{
    Canvas canvas(5, 2);
    CHECK(canvas.write(0, 0, "abc") == 3);
    CHECK(canvas.write(3, 0, "abc") == 2);
    CHECK(canvas.line_text(0) == "abca+");
    CHECK(canvas.write(0, 1, "abcdef", Style::plain, 3) == 3);
    CHECK(canvas.line_text(1) == "ab+");
    for (auto [x, y] : {std::pair(-1, 0), {5, 0}, {0, -1}, {0, 2}, {99, 99}})
        CHECK(canvas.write(x, y, "x") == 0);
    CHECK(canvas.write(0, 0, "x", Style::plain, 0) == 0);
    canvas.write_right(0, 1, "12", Style::plain, 5);
    CHECK(canvas.line_text(1) == "ab+12");
}

TEST_CASE("wide characters are drawn completely or not at all", "[canvas]")
{
    const Locale locale("C.UTF-8");
    Canvas canvas(5, 1);
    CHECK(canvas.write(0, 0, "\u8a13\u7df4") == 4);
    CHECK(canvas.line_text(0) == "\u8a13\u7df4");
    canvas.write(1, 0, "x");
    CHECK(canvas.line_text(0) == " x\u7df4");
    canvas.write(3, 0, "y");
    CHECK(canvas.line_text(0) == " x y");
    canvas.clear();
    CHECK(canvas.write(0, 0, "\u8a13\u7df4\u5668") == 5);
    CHECK(canvas.line_text(0) == "\u8a13\u7df4+");
    canvas.clear();
    CHECK(canvas.write(0, 0, "\u8a13\u7df4\u5668", Style::plain, 4) == 4);
    CHECK(canvas.line_text(0) == "\u8a13 +");
    CHECK(canvas.write(4, 0, "\u8a13") == 1);
    CHECK(canvas.line_text(0) == "\u8a13 ++");
    CHECK(is_whole(canvas));
}

TEST_CASE("combining marks join their character, and invisible characters are dropped", "[canvas]")
{
    const Locale locale("C.UTF-8");
    Canvas canvas(8, 1);
    CHECK(canvas.write(0, 0, "e\u0301x") == 2);
    CHECK(canvas.line_text(0) == "e\u0301x");
    canvas.clear();
    std::string pile = "a";
    for (int i = 0; i < 1000; ++i)
        pile += "\u0301";
    canvas.write(0, 0, pile + "b");
    CHECK(canvas.line(0)[0].text == std::array<char32_t, 3>{U'a', U'\u0301', U'\u0301'});
    canvas.clear();
    CHECK(canvas.write(0, 0, "\u0301a\u200d\ufe0fb") == 2); // nothing to combine with; a joiner; a selector
    CHECK(canvas.line_text(0) == "ab");
}

TEST_CASE("control characters are escaped", "[canvas]")
{
    const Locale locale("C.UTF-8");
    Canvas canvas(40, 1);
    canvas.write(0, 0, "a\x1b[2J\n\x9b\u202e\xff");
    CHECK(canvas.line_text(0) == "a\\x1B[2J\\x0A\\x9B\\xE2\\x80\\xAE\\xFF");
    const Locale none("C");
    canvas.clear();
    CHECK(canvas.write(0, 0, "\u8a13\u7df4x") == 3); // the locale cannot show them
    CHECK(canvas.line_text(0) == "??x");
}

TEST_CASE("random text never splits a wide character", "[canvas]")
{
    const Locale locale("C.UTF-8");
    std::mt19937 random(20260101);
    const auto upto = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
    static constexpr std::string_view pieces[] = {"a",    "\u8a13",     "\u0301", "\x1b",
                                                  "\xff", "\U0001f600", "\u200d", "zz"};
    for (int i = 0; i < 2000; ++i) {
        Canvas canvas(1 + upto(12), 1 + upto(3));
        for (int writes = upto(12); writes >= 0; --writes) {
            std::string text;
            for (int n = upto(8); n > 0; --n)
                text += pieces[upto(std::size(pieces) - 1)];
            const int x = upto(14) - 1, room = upto(14);
            const int used = canvas.write(x, upto(4) - 1, text, Style::plain, room);
            REQUIRE((used >= 0 && used <= room && (used == 0 || x + used <= canvas.columns())));
            if (upto(4) == 0)
                canvas.fill({upto(10), 0, 2, 2}, U' ', Style::dim);
        }
        REQUIRE(is_whole(canvas));
    }
}

TEST_CASE("append_utf8() encodes code points", "[canvas]")
{
    for (const auto& [text, code] :
         {std::pair("a", U'a'), {"\u00e9", U'\u00e9'}, {"\u8a13", U'\u8a13'}, {"\U0001f600", U'\U0001f600'}}) {
        std::string back;
        append_utf8(back, code);
        CHECK(back == text);
    }
}
