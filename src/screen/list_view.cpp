// SPDX-License-Identifier: Apache-2.0
#include "screen/list_view.hpp"

#include "screen/canvas.hpp"

#include <algorithm>

namespace gpusnoop {

namespace {

int selected_line(const std::vector<ListLine>& lines, const std::string& selected)
{
    const auto is_it = [&](const ListLine& line) {
        return selected.empty() ? line.row != nullptr : line.id() == selected;
    };
    auto found = std::ranges::find_if(lines, is_it);
    return found == lines.end() ? -1 : static_cast<int>(found - lines.begin());
}

// Number of columns that never scroll: all leading columns with `stays` or, if the first column lacks it, two columns.
int staying_columns(const std::vector<TopColumn>& columns, const std::vector<size_t>& shown)
{
    const auto scrolls = std::ranges::find_if(shown, [&](size_t i) { return !columns[i].stays; });
    if (scrolls != shown.begin() || shown.empty())
        return static_cast<int>(scrolls - shown.begin());
    return std::min(2, static_cast<int>(shown.size()));
}

std::vector<int> fact_widths(const std::vector<Fact>& facts)
{
    std::vector<int> widths;
    widths.reserve(facts.size());
    for (const Fact& fact : facts)
        widths.push_back(columns_of(fact.label) + 1 + columns_of(fact.value));
    return widths;
}

// Desired width of a column: for a text column, the width of its longest cell, else `least`.
int wanted_width(const TopColumn& column, size_t index, std::span<const ListLine> lines, int least)
{
    int wanted = least;
    if (column.column.unit == Unit::text)
        for (const ListLine& line : lines)
            if (line.row) {
                const auto* text = std::get_if<std::string>(&cell_at(line.row->cells, index));
                if (!text && shows_none(column, *line.row))
                    text = &line.row->none;
                if (text)
                    wanted = std::max(wanted, columns_of(*text));
            }
    return wanted;
}

std::span<const ListLine> visible_lines(const ListView& view)
{
    const size_t first = std::min(static_cast<size_t>(view.first), view.lines.size());
    return std::span(view.lines)
        .subspan(first, std::min(static_cast<size_t>(view.regions.rows.height), view.lines.size() - first));
}

} // namespace

std::string ListLine::id() const
{
    return row ? row->id : "\nbranch " + std::string(branch);
}

std::string header_of(const TopColumn& column)
{
    return std::string(column.column.header) + (column.device_side ? "*" : "");
}

std::vector<size_t> shown_columns(const ScreenState& state, const Snapshot& snapshot)
{
    std::vector<size_t> columns;
    for (const std::string& key : state.shown)
        if (auto column = column_index(snapshot.columns, key); column && snapshot.columns[*column].column.in_text)
            columns.push_back(*column);
    return columns;
}

std::string name_of(const ScreenState& state, const Snapshot& snapshot, const TopRow& row)
{
    const std::vector<size_t> shown = shown_columns(state, snapshot);
    std::string name;
    CellText cells;
    for (int i = 0; i < staying_columns(snapshot.columns, shown); ++i) {
        const size_t column = shown[static_cast<size_t>(i)];
        const Cell& cell = cell_at(row.cells, column);
        if (std::holds_alternative<std::monostate>(cell) || snapshot.columns[column].by_severity)
            continue;
        name += name.empty() ? "" : " ";
        cells.append(name, snapshot.columns[column].column.unit, cell);
    }
    return !name.empty() ? name : row.branch.empty() ? row.id : row.branch;
}

std::vector<ListLine> list_lines(const ScreenState& state, const Snapshot& snapshot)
{
    std::vector<ListLine> lines;
    const std::vector<const TopRow*> rows = arrange(snapshot, state.arrangement);
    if (!state.arrangement.tree) {
        for (const TopRow* row : rows)
            lines.push_back({.row = row, .branch = {}});
        return lines;
    }
    for (auto begin = rows.begin(); begin != rows.end();) {
        const std::string_view branch = (*begin)->branch;
        const auto end = std::find_if(begin, rows.end(), [&](const TopRow* row) { return row->branch != branch; });
        const bool folded = state.folded.contains(branch);
        lines.push_back({.branch = branch,
                         .sum = sum_of(snapshot.columns, {begin, end}),
                         .rows = static_cast<size_t>(end - begin),
                         .folded = folded});
        for (; begin != end; ++begin)
            if (!folded)
                lines.push_back({.row = *begin, .branch = branch, .last = begin + 1 == end});
    }
    return lines;
}

ListView view_list(const ScreenState& state, const Snapshot& snapshot, Size size)
{
    ListView view;
    const auto gpus = static_cast<int>(snapshot.gpus.size());
    view.gpus_side_by_side = gpus_per_line(size.columns, gpus);
    view.facts = flow(size.columns, fact_widths(snapshot.facts));
    const int gpu_lines = (gpus + view.gpus_side_by_side - 1) / view.gpus_side_by_side;
    const int fact_lines = view.facts.empty() ? 0 : view.facts.back().y + 1;
    // Reserves a line even if there are no troubles, so that the rows do not move when one appears.
    const int trouble_lines = snapshot.troubles ? std::max(static_cast<int>(snapshot.troubles->size()), 1) : 0;
    view.regions = lay_out(size, gpu_lines, fact_lines, trouble_lines, !snapshot.totals.empty());

    view.lines = list_lines(state, snapshot);
    for (const ListLine& line : view.lines)
        view.rows += line.row ? 1 : line.folded ? static_cast<int>(line.rows) : 0;
    view.selected = selected_line(view.lines, state.selected);
    // If the first row is selected, keeps the heading above it visible.
    const int at = view.selected == 1 && !view.lines[0].row && view.regions.rows.height > 1 ? 0 : view.selected;
    view.first = scroll(state.first_row, at, static_cast<int>(view.lines.size()), view.regions.rows.height);

    view.columns = shown_columns(state, snapshot);
    view.staying = staying_columns(snapshot.columns, view.columns);
    for (size_t index : view.columns) {
        const TopColumn& column = snapshot.columns[index];
        auto least = static_cast<int>(std::max(width_of(column.column), header_of(column).size()));
        if (auto wide = state.widths.find(column.column.key); wide != state.widths.end())
            least = std::max(least, wide->second);
        view.widths.push_back({least, wanted_width(column, index, visible_lines(view), least)});
    }
    view.indent = state.arrangement.tree ? 3 : 0;
    view.places = place_columns(std::max(size.columns - view.indent, 1), view.widths, view.staying, state.first_column);
    for (PlacedColumn& placed : view.places.placed)
        placed.x += view.indent;
    return view;
}

void widen(ScreenState& state, const Snapshot& snapshot)
{
    const ListView view = view_list(state, snapshot, state.size);
    CellText cells;
    std::string text;
    const auto measure = [&](const TopRow& row) {
        for (size_t index : view.columns) {
            const Cell& cell = cell_at(row.cells, index);
            if (std::holds_alternative<std::string>(cell))
                continue;
            const Column& column = snapshot.columns[index].column;
            text.clear();
            if (cells.append(text, column.unit, cell) <= width_of(column))
                continue;
            int& width = state.widths[std::string(column.key)];
            width = std::max(width, static_cast<int>(text.size()));
        }
    };
    for (const ListLine& line : visible_lines(view))
        if (line.row)
            measure(*line.row);
    for (const TopRow& row : snapshot.totals)
        measure(row);
}

} // namespace gpusnoop
