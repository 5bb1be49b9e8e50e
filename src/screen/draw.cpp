// SPDX-License-Identifier: Apache-2.0
#include "screen/draw.hpp"

#include "base/text.hpp"
#include "screen/history.hpp"
#include "screen/list_view.hpp"
#include "screen/page.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <utility>

namespace gpusnoop {

namespace {

// Numbers of the first and the last visible row, counted from 1.
std::pair<int, int> visible_rows(const ListView& view)
{
    const auto is_row = [](const ListLine& line) { return line.row != nullptr; };
    const std::span<const ListLine> lines(view.lines);
    const size_t first = std::min(static_cast<size_t>(std::max(view.first, 0)), lines.size());
    const size_t seen = std::min(static_cast<size_t>(std::max(view.regions.rows.height, 0)), lines.size() - first);
    const auto before = static_cast<int>(std::ranges::count_if(lines.first(first), is_row));
    return {before + 1, before + static_cast<int>(std::ranges::count_if(lines.subspan(first, seen), is_row))};
}

// True for texts that show zero, such as "0", "0.0" and ">=0".
bool is_zero(std::string_view text)
{
    return text.find_first_not_of("0.>=-") == std::string_view::npos && text.find('0') != std::string_view::npos;
}

// Draws the list, region by region.
class ListDrawing {
public:
    ListDrawing(Canvas& canvas, const ScreenState& state, const Snapshot& snapshot)
        : canvas_(canvas), state_(state), snapshot_(snapshot),
          view_(view_list(state, snapshot, {canvas.columns(), canvas.lines()}))
    {}

    void draw()
    {
        title();
        gpus();
        facts();
        troubles();
        header();
        rows();
        totals();
        draw_footer(canvas_, view_.regions.footer, state_);
    }

private:
    void title();
    void gpus();
    void facts();
    void troubles();
    void header();
    void rows();
    void totals();
    void heading(int y, const ListLine& line);
    void row(int y, const TopRow& row, Style style);
    std::string_view why_empty() const
    {
        if (!state_.starting.empty())
            return state_.starting;
        if (snapshot_.wall_ns == 0)
            return "Waiting for the first values.";
        return snapshot_.rows.empty() ? "Nothing uses a GPU yet." : "No row matches the filter.";
    }
    void cell(int y, const PlacedColumn& placed, const TopRow& row, Style style);
    void trend(int y, const PlacedColumn& placed, const TopRow& row);
    void sort_mark(const PlacedColumn& placed, int y);
    const TopColumn& column_at(const PlacedColumn& placed) const
    {
        return snapshot_.columns[view_.columns[static_cast<size_t>(placed.column)]];
    }

    Canvas& canvas_;
    const ScreenState& state_;
    const Snapshot& snapshot_;
    ListView view_;
    CellText cells_;
    std::string text_; // text of the current cell; a member only so that its memory is reused
};

void ListDrawing::title()
{
    const Rect& rect = view_.regions.title;
    if (rect.height == 0)
        return;
    text_ = state_.tool + " ";
    if (snapshot_.wall_ns)
        cells_.append_clock(text_, snapshot_.wall_ns);
    if (!state_.starting.empty()) {
        canvas_.write(0, rect.y, text_ + " starting", Style::title, rect.width);
        return;
    }
    append_format(text_, "  by {}", snapshot_.by);
    if (!state_.within.id.empty())
        append_format(text_, " in {} {} (Esc: back)", state_.within.by, state_.within.name);
    if (snapshot_.replayed.empty())
        append_format(text_, "  every {}", interval_text(state_.interval));
    text_ += "  rows ";
    if (const auto [first, last] = visible_rows(view_); last >= first && last - first + 1 < view_.rows)
        append_format(text_, "{}-{} of ", first, last);
    append_format(text_, "{}", view_.rows);
    if (!state_.arrangement.filter.empty())
        append_format(text_, "/{}", snapshot_.rows.size());
    const auto shown = static_cast<int>(view_.columns.size());
    if (view_.places.first > 0 || view_.places.more > 0)
        append_format(text_, "  columns {}-{}/{}", view_.staying + view_.places.first + 1, shown - view_.places.more,
                      shown);
    int x = canvas_.write(0, rect.y, text_, Style::title, rect.width);
    const auto note = [&](bool on, std::string_view what) {
        if (on && x + 2 < rect.width)
            x += 2 + canvas_.write(x + 2, rect.y, what, Style::notice);
    };
    note(!snapshot_.replayed.empty(), snapshot_.replayed);
    note(state_.paused, "PAUSED");
    note(!state_.arrangement.frozen.empty(), "FROZEN");
    note(state_.arrangement.tree, "TREE");
}

void ListDrawing::gpus()
{
    const Rect& region = view_.regions.gpus;
    const int beside = view_.gpus_side_by_side;
    const int width = (region.width - (beside - 1) * 2) / beside;
    const auto count = static_cast<int>(snapshot_.gpus.size());
    const int room = region.height * beside;
    for (int i = 0; i < std::min(count, room); ++i) {
        const Rect rect{i % beside * (width + 2), region.y + i / beside, width, 1};
        const std::string more = i == room - 1 && count > room ? fmt::format(" +{}", count - room) : "";
        const int left = std::max(width - static_cast<int>(more.size()), 0);
        draw_gpu(canvas_, {rect.x, rect.y, left, 1}, snapshot_.gpus[static_cast<size_t>(i)]);
        canvas_.write(rect.x + left, rect.y, more, Style::dim, width - left);
    }
}

void ListDrawing::facts()
{
    const Rect& region = view_.regions.facts;
    for (size_t i = 0; i < snapshot_.facts.size(); ++i) {
        const Rect& rect = view_.facts[i];
        if (rect.y >= region.height)
            return;
        const Fact& fact = snapshot_.facts[i];
        const int y = region.y + rect.y;
        const int used = canvas_.write(rect.x, y, fact.label, Style::dim, rect.width) + 1;
        const Style style = fact.alarm ? Style::alarm : fact.quiet ? Style::dim : Style::plain;
        canvas_.write(rect.x + used, y, fact.value, style, rect.width - used);
    }
}

void ListDrawing::troubles()
{
    const Rect& region = view_.regions.troubles;
    if (region.height == 0)
        return;
    const std::vector<Trouble>& all = *snapshot_.troubles;
    if (all.empty() && !snapshot_.rows.empty())
        canvas_.write(0, region.y, "No problem found (host side only).", Style::dim);
    size_t widest = 0;
    const size_t shown = std::min(all.size(), static_cast<size_t>(region.height));
    for (const Trouble& trouble : std::span(all).first(shown))
        widest = std::max(widest, static_cast<size_t>(columns_of(trouble.who)));
    for (size_t i = 0; i < shown; ++i) {
        const Trouble& trouble = all[i];
        const Style style = style_of(trouble.severity);
        const int y = region.y + static_cast<int>(i);
        const std::string more =
            i + 1 == shown && all.size() > shown ? fmt::format(" +{} (!)", all.size() - shown) : std::string();
        const int room = region.width - static_cast<int>(more.size());
        const int name = 3;
        const int words = name + static_cast<int>(std::min<size_t>(widest, 22)) + 1;
        canvas_.write(0, y, trouble.mark, style, std::min(name, room));
        canvas_.write(name, y, trouble.who, style, std::max(std::min(words - name - 1, room - name), 0));
        canvas_.write(words, y, trouble.words, Style::plain, std::max(room - words, 0));
        canvas_.write(room, y, more, Style::dim);
    }
}

void ListDrawing::header()
{
    const Rect& region = view_.regions.header;
    if (region.height == 0)
        return;
    canvas_.fill(region, U' ', Style::header);
    int end = 0;
    for (const PlacedColumn& placed : view_.places.placed) {
        const TopColumn& column = column_at(placed);
        const bool sorted = column.column.key == state_.arrangement.sort;
        const Style style = sorted ? Style::sorted : Style::header;
        text_ = header_of(column);
        if (is_left_aligned(column.column.unit))
            canvas_.write(placed.x, region.y, text_, style, placed.width);
        else
            canvas_.write_right(placed.x, region.y, text_, style, placed.width);
        if (sorted)
            sort_mark(placed, region.y);
        end = placed.x + placed.width;
    }
    if (view_.places.more > 0 && end + 1 < region.width)
        canvas_.write(region.width - 1, region.y, ">", Style::header);
}

// Draws the sort mark after a left-aligned header, or before a right-aligned one. Even if the header fills the column,
// the gap between columns has room for the mark.
void ListDrawing::sort_mark(const PlacedColumn& placed, int y)
{
    const bool ascii = state_.glyphs == Glyphs::ascii;
    const std::string_view mark = state_.arrangement.ascending ? (ascii ? "^" : "\u25b2") : ascii ? "v" : "\u25bc";
    const int width = std::min(columns_of(text_), placed.width);
    const int x =
        is_left_aligned(column_at(placed).column.unit) ? placed.x + width : placed.x + placed.width - width - 1;
    canvas_.write(std::clamp(x, 0, std::max(canvas_.columns() - 1, 0)), y, mark, Style::sorted, 1);
}

void ListDrawing::totals()
{
    const Rect& region = view_.regions.totals;
    if (region.height == 0)
        return;
    row(region.y, *sum_line(snapshot_, state_.arrangement), Style::total);
    // The label is written over the columns that identify a row, which are empty in the sum line.
    int room = 0;
    for (const PlacedColumn& placed : view_.places.placed)
        if (placed.column < view_.staying && !column_at(placed).adds)
            room = placed.x + placed.width;
        else
            break;
    const size_t all = snapshot_.rows.size();
    const auto shown = static_cast<size_t>(view_.rows);
    const std::string label = shown < all ? fmt::format("sum of {} of {}", shown, all) : fmt::format("sum of {}", all);
    canvas_.write(0, region.y, label, Style::total, room);
}

void ListDrawing::rows()
{
    const Rect& region = view_.regions.rows;
    for (int i = 0; i < region.height; ++i) {
        const int at = view_.first + i;
        if (at >= static_cast<int>(view_.lines.size()))
            break;
        const int y = region.y + i;
        const ListLine& line = view_.lines[static_cast<size_t>(at)];
        if (!line.row)
            heading(y, line);
        else
            row(y, *line.row, Style::plain);
        if (line.row && view_.indent)
            canvas_.write(0, y,
                          state_.glyphs == Glyphs::ascii ? (line.last ? "`-" : "|-")
                          : line.last                    ? "└─"
                                                         : "├─",
                          Style::dim);
        if (at == view_.selected)
            canvas_.restyle({0, y, region.width, 1}, Style::selected);
    }
    if (view_.lines.empty())
        canvas_.write(0, region.y, why_empty(), Style::dim);
}

// Draws the heading of a branch: the branch's name over the columns that identify a row, and sums of the branch's rows
// in the other columns.
void ListDrawing::heading(int y, const ListLine& line)
{
    int room = canvas_.columns();
    for (const PlacedColumn& placed : view_.places.placed)
        if (column_at(placed).adds) {
            if (room == canvas_.columns())
                room = placed.x - 1;
            const size_t index = view_.columns[static_cast<size_t>(placed.column)];
            text_.clear();
            cells_.append(text_, column_at(placed).column.unit, cell_at(line.sum, index));
            if (!std::holds_alternative<std::monostate>(cell_at(line.sum, index)))
                canvas_.write_right(placed.x, y, text_, Style::branch, placed.width);
        }
    text_ = line.folded ? "+ " : "- ";
    append_format(text_, "{} ({})", line.branch.empty() ? "(none)" : line.branch, line.rows);
    canvas_.write(0, y, text_, Style::branch, std::max(room, 1));
}

void ListDrawing::row(int y, const TopRow& row, Style style)
{
    if (style != Style::plain)
        canvas_.fill({0, y, canvas_.columns(), 1}, U' ', style);
    for (const PlacedColumn& placed : view_.places.placed)
        cell(y, placed, row, style);
}

void ListDrawing::cell(int y, const PlacedColumn& placed, const TopRow& row, Style style)
{
    const TopColumn& column = column_at(placed);
    const size_t index = view_.columns[static_cast<size_t>(placed.column)];
    const Cell& value = cell_at(row.cells, index);
    if (column.trend)
        return style == Style::total ? void() : trend(y, placed, row);
    if (style == Style::total && column.stays && std::holds_alternative<std::monostate>(value))
        return; // the column identifies a row, so it is empty in the sum line
    if (style == Style::plain && column.by_severity)
        style = style_of(row.severity);
    if (style == Style::plain && column.device_side)
        style = Style::device;
    if (style == Style::plain && column.bad)
        style = Style::warning;
    if (shows_none(column, row) && std::holds_alternative<std::monostate>(value)) {
        canvas_.write(placed.x, y, row.none, Style::dim, placed.width);
        return;
    }
    if (style != Style::total && std::holds_alternative<std::monostate>(value))
        style = Style::dim;
    if (column.device_side && std::holds_alternative<std::monostate>(value))
        // NVML is not available, or does not report this value
        return canvas_.write_right(placed.x, y, "n/a", style, placed.width);
    if (const auto* text = std::get_if<std::string>(&value)) {
        canvas_.write(placed.x, y, *text, style, placed.width);
        return;
    }
    text_.clear();
    cells_.append(text_, column.column.unit, value);
    if (style != Style::total && !column.stays && is_zero(text_))
        style = Style::dim;
    if (is_left_aligned(column.column.unit))
        canvas_.write(placed.x, y, text_, style, placed.width);
    else
        canvas_.write_right(placed.x, y, text_, style, placed.width);
}

void ListDrawing::trend(int y, const PlacedColumn& placed, const TopRow& row)
{
    auto column = column_index(snapshot_.columns, state_.arrangement.sort);
    if (!column || snapshot_.columns[*column].column.unit == Unit::text) // a text column has no numbers to plot
        column = column_index(snapshot_.columns, state_.arrangement.then);
    if (!column)
        return;
    const std::vector<double> values =
        state_.history.values(row.id, *column, values_in(placed.width, state_.glyphs), state_.behind);
    canvas_.write(placed.x, y, plot(values, placed.width, 1, state_.glyphs).front(), Style::bar, placed.width);
}

// The text without its first `column` columns.
std::string from_column(const std::string& text, int column)
{
    if (column == 0)
        return text;
    Canvas line(std::min(columns_of(text) + 1, 4096), 1);
    line.write(0, 0, text);
    std::string rest;
    for (const Canvas::Cell& cell : line.line(0).subspan(static_cast<size_t>(std::min(column, line.columns()))))
        for (char32_t code : cell.text)
            if (code)
                append_utf8(rest, code);
    return rest;
}

void draw_page(Canvas& canvas, const ScreenState& state, const Snapshot& snapshot)
{
    const Size size{canvas.columns(), canvas.lines()};
    const Page page = page_of(state, snapshot, size);
    int y = 0;
    const auto line = [&](const PageLine& of) {
        if (of.style == Style::selected || of.style == Style::header)
            canvas.fill({0, y, size.columns, 1}, U' ', of.style);
        canvas.write(0, y++, of.text, of.style);
    };
    if (size.lines > 1)
        line({page.title, Style::title});
    if (state.paused && state.view == View::detail)
        canvas.write_right(0, 0, "PAUSED", Style::notice, size.columns);
    for (const PageLine& of : page.above)
        line(of);
    const int height = page_height(page, size);
    const auto top = static_cast<size_t>(state.page_top);
    for (size_t i = top; i < page.lines.size() && i < top + static_cast<size_t>(height); ++i)
        line({from_column(page.lines[i].text, state.page_left), page.lines[i].style});
    if (size.lines > 2)
        draw_footer(canvas, {0, size.lines - 1, size.columns, 1}, state);
}

} // namespace

void draw(Canvas& canvas, const ScreenState& state, const Snapshot& snapshot)
{
    canvas.clear();
    if (state.view == View::list)
        ListDrawing(canvas, state, snapshot).draw();
    else
        draw_page(canvas, state, snapshot);
}

} // namespace gpusnoop
