// SPDX-License-Identifier: Apache-2.0
#include "screen/canvas.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cwchar>

namespace gpusnoop {

namespace {

bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f;
}

// True if the character can be shown in the current locale.
bool can_be_drawn(char32_t code)
{
    return code < 0x7f || is_invisible(code) || ::wcwidth(static_cast<wchar_t>(code)) >= 0;
}

// Calls put(code, columns) for each character, until it returns false. Characters that cannot be shown are passed as
// '?'.
template<typename Put>
void for_each_character(std::string_view text, Put put)
{
    while (!text.empty()) {
        const CodePoint c = first_code_point(text);
        text.remove_prefix(c.length ? c.length : 1);
        const int width = c.length && can_be_drawn(c.code) ? columns_of(c.code) : -1;
        if (width < 0 ? !put(U'?', 1) : !put(c.code, width))
            return;
    }
}

} // namespace

int columns_of(std::string_view text)
{
    if (std::ranges::all_of(text, is_plain))
        return static_cast<int>(std::min<size_t>(text.size(), Canvas::everything));
    int columns = 0;
    for_each_character(printable(text), [&](char32_t, int width) {
        columns += width;
        return columns < Canvas::everything - 2;
    });
    return columns;
}

Canvas::Canvas(int columns, int lines) : columns_(std::max(columns, 1)), lines_(std::max(lines, 1))
{
    cells_.resize(static_cast<size_t>(columns_) * static_cast<size_t>(lines_));
}

void Canvas::clear()
{
    std::ranges::fill(cells_, Cell{});
}

std::span<const Canvas::Cell> Canvas::line(int y) const
{
    return std::span(cells_).subspan(static_cast<size_t>(y) * static_cast<size_t>(columns_),
                                     static_cast<size_t>(columns_));
}

// Must be called before a cell is overwritten. If the cell is half of a wide character, erases the other half.
void Canvas::unpair(int x, int y)
{
    Cell* line = cells_.data() + static_cast<ptrdiff_t>(y) * columns_;
    if (line[x].width == 0 && x > 0)
        line[x - 1] = Cell{.style = line[x - 1].style};
    if (line[x].width == 2 && x + 1 < columns_)
        line[x + 1] = Cell{.style = line[x + 1].style};
}

void Canvas::put(int x, int y, const Cell& cell)
{
    Cell* line = cells_.data() + static_cast<ptrdiff_t>(y) * columns_;
    unpair(x, y);
    if (cell.width == 2) {
        unpair(x + 1, y);
        line[x + 1] = Cell{.text = {}, .width = 0, .style = cell.style};
    }
    line[x] = cell;
}

int Canvas::write(int x, int y, std::string_view text, Style style, int room)
{
    if (y < 0 || y >= lines_ || x < 0 || x >= columns_ || room <= 0)
        return 0;
    room = std::min(room, columns_ - x);

    std::string harmless;
    if (!std::ranges::all_of(text, is_plain)) {
        // bounds the work for long texts; the limit exceeds `room`, so that only the loop below truncates the text
        append_printable(harmless, text, static_cast<size_t>(room) * 4 + 1);
        text = harmless;
    }
    int used = 0;
    bool cut = false;
    for_each_character(text, [&](char32_t code, int width) {
        if (width == 0) {
            if (used > 0 && !is_invisible(code)) {
                Cell* last = cells_.data() + static_cast<ptrdiff_t>(y) * columns_ + x + used - 1;
                last -= last->width == 0;
                if (auto free = std::ranges::find(last->text, U'\0'); free != last->text.end())
                    *free = code;
            }
            return true;
        }
        cut = used + width > room;
        if (!cut) {
            put(x + used, y, {.text = {code}, .width = static_cast<uint8_t>(width), .style = style});
            used += width;
        }
        return !cut;
    });
    if (cut) {
        if (used == room) // false if a wide character did not fit into the last column, which is then free for the '+'
            --used;
        put(x + used, y, {.text = {U'+'}, .style = style});
        ++used;
        if (used < room)
            put(x + used, y, {.style = style});
    }
    return cut ? room : used;
}

void Canvas::write_right(int x, int y, std::string_view text, Style style, int room)
{
    const int used = std::min(columns_of(text), room);
    write(x + room - used, y, text, style, used);
}

void Canvas::fill(const Rect& rect, char32_t code, Style style)
{
    for (int y = std::max(rect.y, 0); y < std::min(rect.y + rect.height, lines_); ++y)
        for (int x = std::max(rect.x, 0); x < std::min(rect.x + rect.width, columns_); ++x)
            put(x, y, {.text = {code}, .style = style});
}

void Canvas::restyle(const Rect& rect, Style style)
{
    for (int y = std::max(rect.y, 0); y < std::min(rect.y + rect.height, lines_); ++y)
        for (int x = std::max(rect.x, 0); x < std::min(rect.x + rect.width, columns_); ++x)
            cells_[static_cast<size_t>(y) * static_cast<size_t>(columns_) + static_cast<size_t>(x)].style = style;
}

std::string Canvas::line_text(int y) const
{
    std::string text;
    for (const Cell& cell : line(y))
        for (char32_t code : cell.text)
            if (code)
                append_utf8(text, code);
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

} // namespace gpusnoop
