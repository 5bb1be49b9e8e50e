// SPDX-License-Identifier: Apache-2.0
// Values over time as lines of text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

enum class Glyphs {
    braille, // two values a column, four steps a line
    blocks,  // one value a column, eight steps a line
    ascii,   // one value a column, two steps a line
};

// What the locale (LC_CTYPE) can show: braille with UTF-8, ASCII without.
Glyphs glyphs_of_locale();

// How many values a plot of so many columns shows.
size_t values_in(int columns, Glyphs glyphs);

// `lines` lines of `columns` columns each, the newest value at the right edge, the top of them for `top` or, without
// it, for the largest value. A value that is not known (NaN) leaves a gap; one that is 0 stands on the ground.
std::vector<std::string> plot(std::span<const double> values, int columns, int lines, Glyphs glyphs,
                              std::optional<double> top = std::nullopt);

// One line of `columns` columns of which a share (0..1) is filled, from the left.
std::string bar(double share, int columns);

double largest(std::span<const double> values); // of those that are known; 0 if there is none

} // namespace gpusnoop
