// SPDX-License-Identifier: Apache-2.0
// Grid of character cells to draw on, independent of a terminal. Text is clipped, and control characters are replaced.
#pragma once

#include "base/text.hpp"
#include "screen/keys.hpp"
#include "screen/layout.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

class Canvas {
public:
    struct Cell {
        std::array<char32_t, 3> text{U' '}; // a character, and up to two combining marks
        uint8_t width = 1; // width in columns; 2: a wide character, which also covers the cell to its right; 0: that
                           // covered cell
        Style style = Style::plain;

        bool operator==(const Cell&) const = default;
    };

    Canvas(int columns, int lines);

    int columns() const { return columns_; }
    int lines() const { return lines_; }
    void clear();

    // Writes text at (x, y), in at most `room` columns and not beyond the edge. Text that does not fit is truncated and
    // ends in '+'; a wide character is never cut in half. Returns the number of columns used.
    int write(int x, int y, std::string_view text, Style style = Style::plain, int room = everything);
    // Writes text, aligned to the right end of `room` columns.
    void write_right(int x, int y, std::string_view text, Style style, int room);

    void fill(const Rect& rect, char32_t code, Style style); // the character `code` must be one column wide
    void restyle(const Rect& rect, Style style);

    std::span<const Cell> line(int y) const;
    std::string line_text(int y) const; // without trailing spaces

    static constexpr int everything = INT32_MAX;

private:
    void put(int x, int y, const Cell& cell);
    void unpair(int x, int y);

    int columns_;
    int lines_;
    std::vector<Cell> cells_;
};

// Width of a text in columns, with control characters replaced.
int columns_of(std::string_view text);

} // namespace gpusnoop
