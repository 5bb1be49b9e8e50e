// SPDX-License-Identifier: Apache-2.0
// A grid of cells that is drawn on without a terminal. Whatever is written is clipped and made harmless.
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
        uint8_t width = 1;                  // 2: wide, the next cell is its right half; 0: such a half
        Style style = Style::plain;

        bool operator==(const Cell&) const = default;
    };

    Canvas(int columns, int lines);

    int columns() const { return columns_; }
    int lines() const { return lines_; }
    void clear();

    // Writes a text from (x, y) on, at most `room` columns of it and never past the edge. What does not fit ends in
    // '+'. Returns the columns used. A wide character of which only half would be seen is left out.
    int write(int x, int y, std::string_view text, Style style = Style::plain, int room = everything);
    // The same at the right end of the room.
    void write_right(int x, int y, std::string_view text, Style style, int room);

    void fill(const Rect& rect, char32_t code, Style style); // code: of one column
    void restyle(const Rect& rect, Style style);

    std::span<const Cell> line(int y) const;
    std::string line_text(int y) const; // without the spaces at its end

    static constexpr int everything = INT32_MAX;

private:
    void put(int x, int y, const Cell& cell);
    void unpair(int x, int y);

    int columns_;
    int lines_;
    std::vector<Cell> cells_;
};

// Columns that a text takes once it has been made harmless.
int columns_of(std::string_view text);

} // namespace gpusnoop
