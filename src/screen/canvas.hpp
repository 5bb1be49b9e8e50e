// SPDX-License-Identifier: Apache-2.0
// Grid of character cells to draw on, without a terminal. Text is clipped and made safe for the terminal.
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
        std::array<char32_t, 3> text{U' '}; // a character and up to two marks that combine with it
        uint8_t width = 1;                  // 2: wide character, whose right half is the next cell; 0: right half
        Style style = Style::plain;

        bool operator==(const Cell&) const = default;
    };

    Canvas(int columns, int lines);

    int columns() const { return columns_; }
    int lines() const { return lines_; }
    void clear();

    // Writes text at (x, y), at most `room` columns and not beyond the edge. Text that does not fit is cut and ends in
    // '+'; a wide character is never cut in half. Returns the number of columns used.
    int write(int x, int y, std::string_view text, Style style = Style::plain, int room = everything);
    // Writes text right-aligned in the room.
    void write_right(int x, int y, std::string_view text, Style style, int room);

    void fill(const Rect& rect, char32_t code, Style style); // code: a character of width 1
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

// Width of a text, in columns, after it was made safe for the terminal.
int columns_of(std::string_view text);

} // namespace gpusnoop
