// SPDX-License-Identifier: Apache-2.0
#include "screen/layout.hpp"

#include <algorithm>

namespace gpusnoop {

Regions lay_out(Size screen, int gpu_lines, int fact_lines, int trouble_lines, bool totals)
{
    Regions regions;
    int left = screen.lines - 1; // one line is reserved for a row
    auto reserve = [&](int wanted) {
        const int height = std::clamp(wanted, 0, left);
        left -= height;
        return height;
    };
    regions.header.height = reserve(1);
    regions.footer.height = reserve(1);
    regions.title.height = reserve(1);
    regions.totals.height = screen.lines >= 8 ? reserve(totals) : 0;
    regions.troubles.height = screen.lines >= 10 ? reserve(std::min(trouble_lines, 3)) : 0;
    const int extra = screen.lines / 3;
    regions.facts.height = reserve(std::min(fact_lines, extra - std::min(gpu_lines, extra / 2)));
    regions.gpus.height = reserve(std::min(gpu_lines, extra - regions.facts.height));
    regions.rows.height = left + 1;

    int y = 0;
    for (Rect* rect : {&regions.title, &regions.gpus, &regions.facts, &regions.troubles, &regions.header, &regions.rows,
                       &regions.totals, &regions.footer}) {
        rect->y = y;
        rect->width = screen.columns;
        y += rect->height;
    }
    return regions;
}

int gpus_per_line(int columns, int gpus)
{
    constexpr int least = 38;
    return std::clamp(columns / least, 1, std::max(gpus, 1));
}

std::vector<Rect> flow(int columns, std::span<const int> widths)
{
    constexpr int gap = 2;
    std::vector<Rect> rects;
    int x = 0, y = 0;
    for (int wanted : widths) {
        const int width = std::clamp(wanted, 0, columns);
        if (x > 0 && x + width > columns) {
            x = 0;
            ++y;
        }
        rects.push_back({x, y, width, 1});
        x += width + gap;
    }
    return rects;
}

int scroll(int first, int selected, int count, int height)
{
    if (selected >= 0)
        first = std::clamp(first, selected - height + 1, selected);
    return std::clamp(first, 0, std::max(count - height, 0));
}

namespace {

constexpr int gap = 1;

int width_of(std::span<const ColumnWidth> widths)
{
    int width = 0;
    for (const ColumnWidth& column : widths)
        width += column.least + gap;
    return width;
}

// Number of columns that never scroll: `staying`, or fewer if these would take more than half of the width.
int staying_count(int columns, std::span<const ColumnWidth> widths, int staying)
{
    staying = std::clamp(staying, 0, static_cast<int>(widths.size()));
    while (staying > 0 && width_of(widths.first(static_cast<size_t>(staying))) > columns / 2)
        --staying;
    return staying;
}

// Distributes the remaining room to columns that want to be wider, from left to right.
void grow(ColumnPlaces& places, std::span<const ColumnWidth> widths, int room)
{
    int shift = 0;
    for (PlacedColumn& placed : places.placed) {
        placed.x += shift;
        const ColumnWidth& width = widths[static_cast<size_t>(placed.column)];
        const int more = std::clamp(width.wanted - placed.width, 0, room - shift);
        placed.width += more;
        shift += more;
    }
}

} // namespace

ColumnPlaces place_columns(int columns, std::span<const ColumnWidth> widths, int staying, int first)
{
    const auto count = static_cast<int>(widths.size());
    staying = staying_count(columns, widths, staying);
    const int room = columns - width_of(widths.first(static_cast<size_t>(staying)));

    // The view scrolls only as far as needed to show the last column.
    int furthest = count;
    for (int used = -gap; furthest > staying; --furthest) {
        used += widths[static_cast<size_t>(furthest) - 1].least + gap;
        if (used > room)
            break;
    }
    // The last column never scrolls away, even if it does not fit.
    furthest = std::min(furthest, std::max(count - 1, staying));
    ColumnPlaces places;
    places.first = std::clamp(first, 0, furthest - staying);

    int x = 0;
    auto place = [&](int column) {
        const int width = widths[static_cast<size_t>(column)].least;
        const bool fits = x + width <= columns;
        // if the first column after those that never scroll does not fit, it is truncated, not left out
        const bool alone = column == staying + places.first;
        if (x >= columns || (!fits && !alone))
            return false;
        places.placed.push_back({column, x, std::min(width, columns - x)});
        x += width + gap;
        return true;
    };
    for (int column = 0; column < staying; ++column)
        place(column);
    int next = staying + places.first;
    while (next < count && place(next))
        ++next;
    places.more = count - next;
    grow(places, widths, std::max(columns - (x - gap), 0));
    return places;
}

int scroll_to_column(int columns, std::span<const ColumnWidth> widths, int staying, int first, int column)
{
    staying = staying_count(columns, widths, staying);
    if (column < staying)
        return first;
    if (column < staying + first)
        return column - staying;
    while (first < column - staying) {
        const ColumnPlaces places = place_columns(columns, widths, staying, first);
        if (std::ranges::find(places.placed, column, &PlacedColumn::column) != places.placed.end())
            break;
        ++first;
    }
    return first;
}

} // namespace gpusnoop
