// SPDX-License-Identifier: Apache-2.0
#include "screen/plot.hpp"

#include "base/text.hpp"
#include "screen/canvas.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <langinfo.h>
#include <string_view>

namespace gpusnoop {

namespace {

int values_per_column(Glyphs glyphs)
{
    return glyphs == Glyphs::braille ? 2 : 1;
}

int steps_per_line(Glyphs glyphs)
{
    return glyphs == Glyphs::braille ? 4 : glyphs == Glyphs::blocks ? 8 : 2;
}

// Steps from the ground up. At least one, so that a 0 is not taken for a gap.
int steps_of(double value, double top, int steps)
{
    if (!std::isfinite(value))
        return 0;
    if (!(top > 0))
        return 1;
    return std::clamp(static_cast<int>(std::lround(std::clamp(value / top, 0.0, 1.0) * steps)), 1, steps);
}

// One character: how many of its steps are filled, in its left and its right half.
char32_t glyph(Glyphs glyphs, int left, int right)
{
    if (glyphs == Glyphs::ascii)
        return std::array{U' ', U'.', U':'}[static_cast<size_t>(left)];
    if (glyphs == Glyphs::blocks)
        return left ? U'\u2580' + static_cast<char32_t>(left) : U' ';
    // The dots of a braille pattern, from the ground up, are bits 6, 2, 1, 0 on the left and 7, 5, 4, 3 on the right.
    constexpr std::array<char32_t, 5> left_dots{0, 0x40, 0x44, 0x46, 0x47};
    constexpr std::array<char32_t, 5> right_dots{0, 0x80, 0xa0, 0xb0, 0xb8};
    const char32_t dots = left_dots[static_cast<size_t>(left)] | right_dots[static_cast<size_t>(right)];
    return dots ? U'\u2800' + dots : U' ';
}

} // namespace

Glyphs glyphs_of_locale()
{
    return ::nl_langinfo(CODESET) == std::string_view("UTF-8") ? Glyphs::braille : Glyphs::ascii;
}

size_t values_in(int columns, Glyphs glyphs)
{
    return static_cast<size_t>(std::max(columns, 0)) * static_cast<size_t>(values_per_column(glyphs));
}

double largest(std::span<const double> values)
{
    double most = 0;
    for (double value : values)
        if (std::isfinite(value))
            most = std::max(most, value);
    return most;
}

std::vector<std::string> plot(std::span<const double> values, int columns, int lines, Glyphs glyphs,
                              std::optional<double> top)
{
    columns = std::max(columns, 0);
    lines = std::max(lines, 0);
    const size_t room = values_in(columns, glyphs);
    values = values.last(std::min(values.size(), room));
    const double highest = top.value_or(largest(values));

    const int per_line = steps_per_line(glyphs);
    std::vector<int> heights(room - values.size()); // nothing is known of what was before
    for (double value : values)
        heights.push_back(steps_of(value, highest, per_line * lines));

    std::vector<std::string> text(static_cast<size_t>(lines));
    const auto step = static_cast<size_t>(values_per_column(glyphs));
    for (int line = 0; line < lines; ++line) {
        const int below = (lines - 1 - line) * per_line;
        const auto filled = [&](size_t i) { return std::clamp(heights[i] - below, 0, per_line); };
        for (size_t i = 0; i < room; i += step)
            append_utf8(text[static_cast<size_t>(line)], glyph(glyphs, filled(i), filled(i + step - 1)));
    }
    return text;
}

std::string bar(double share, int columns)
{
    columns = std::max(columns, 0);
    share = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
    const auto filled = static_cast<size_t>(std::lround(share * columns));
    std::string text(filled, '|');
    text.resize(static_cast<size_t>(columns), ' ');
    return text;
}

} // namespace gpusnoop
