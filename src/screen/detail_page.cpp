// SPDX-License-Identifier: Apache-2.0
#include "screen/canvas.hpp"
#include "screen/list_view.hpp"
#include "screen/page.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {

namespace {

// "12.3M", as the column writes it.
std::string value_text(Unit unit, double value)
{
    std::string text;
    const bool counts = unit == Unit::count || unit == Unit::hex;
    CellText().append(text, unit, counts && value >= 0 && value < 1e18 ? Cell(static_cast<uint64_t>(value)) : value);
    return text;
}

// A title and, below it, the values of one column. Nothing where there is no room.
std::vector<PageLine> history_lines(const ScreenState& state, const Snapshot& snapshot, Size size)
{
    const auto column = column_index(snapshot.columns, state.plotted);
    const int height = size.lines >= 12 ? std::clamp(size.lines / 4, 3, 10) : 0;
    if (!column || height == 0)
        return {};
    const TopColumn& of = snapshot.columns[*column];
    constexpr int scale = 8; // the largest value, and 0, beside the plot
    const int width = std::max(size.columns - scale, 1);
    const size_t room = values_in(width, state.glyphs);
    const std::vector<double> values = state.history.values(state.open, *column, room, state.behind);
    const double most = largest(values);
    const std::string last = values.empty() ? "-" : value_text(of.column.unit, values.back());

    std::vector<PageLine> lines;
    lines.push_back({fmt::format("{} now {}, at most {} in the last {:.0f} s", header_of(of), last,
                                 values.empty() ? "-" : value_text(of.column.unit, most),
                                 state.history.seconds(values.size(), state.behind)),
                     Style::header});
    const std::vector<std::string> plotted = plot(values, width, height - 2, state.glyphs);
    for (const std::string& line : plotted) {
        const bool first = lines.size() == 1, last_one = lines.size() == plotted.size();
        const std::string label = first ? values.empty() ? "-" : value_text(of.column.unit, most) : last_one ? "0" : "";
        lines.push_back({fmt::format("{:>{}} {}", label, scale - 1, line), Style::bar});
    }
    const std::string begin =
        fmt::format("-{:.0f}s", state.history.seconds(std::min(room, values.size()), state.behind));
    const auto filled = static_cast<int>(values.size() * static_cast<size_t>(width) / std::max<size_t>(room, 1));
    // Below the oldest value, as far as there is room beside "now".
    const int end = std::max(std::min(scale + width - filled + 1, size.columns - 4), 1);
    const std::string axis = fmt::format("{:>{}}", begin, end);
    lines.push_back({fmt::format("{}{:>{}}", axis, "now", std::max(size.columns - end, 4)), Style::dim});
    return lines;
}

// Each column as wide as its widest cell.
std::vector<PageLine> table_lines(const DetailPart& part)
{
    CellText cells;
    std::vector<size_t> shown;
    for (size_t i = 0; i < part.columns.size(); ++i)
        if (part.columns[i].in_text)
            shown.push_back(i);

    std::vector<std::vector<std::string>> texts(1); // the headers first
    for (size_t i : shown)
        texts[0].emplace_back(part.columns[i].header);
    for (const Row& row : part.rows)
        for (std::vector<std::string>& line = texts.emplace_back(); size_t i : shown)
            cells.append(line.emplace_back(), part.columns[i].unit, cell_at(row, i));

    std::vector<std::string> lines(texts.size());
    for (size_t at = 0; at < shown.size(); ++at) {
        const Column& column = part.columns[shown[at]];
        int width = column.width;
        for (const auto& line : texts)
            width = std::max(width, columns_of(line[at]));
        for (size_t i = 0; i < lines.size(); ++i) {
            const std::string padding(static_cast<size_t>(width - columns_of(texts[i][at])), ' ');
            lines[i] += is_left_aligned(column.unit) ? texts[i][at] + padding : padding + texts[i][at];
            lines[i] += ' ';
        }
    }
    std::vector<PageLine> result;
    result.reserve(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) { // the first is the header
        result.push_back({std::move(lines[i]), i == 0 ? Style::header : Style::plain});
        if (i > 0 && i <= part.below.size())
            for (const std::string& frame : part.below[i - 1])
                result.push_back({"    " + frame, Style::dim});
    }
    return result;
}

} // namespace

std::vector<size_t> plotted_columns(const Snapshot& snapshot)
{
    std::vector<size_t> columns;
    for (size_t i = 0; i < snapshot.columns.size(); ++i) {
        const Column& column = snapshot.columns[i].column;
        const bool says_who = column.key == "pid" || column.key == "ns_pid" || column.key == "tid";
        if (!is_left_aligned(column.unit) && column.in_text && !says_who)
            columns.push_back(i);
    }
    return columns;
}

Page detail_page(const ScreenState& state, const Snapshot& snapshot, Size size)
{
    auto row = std::ranges::find(snapshot.rows, state.open, &TopRow::id);
    const bool ended = row == snapshot.rows.end();
    Page page{
        ended ? state.open_name + " (gone)" : name_of(state, snapshot, *row), history_lines(state, snapshot, size), {}};
    if (snapshot.detail_of.empty() || snapshot.detail_of == state.open) {
        for (const DetailPart& part : snapshot.detail) {
            if (!page.lines.empty())
                page.lines.push_back({});
            if (!part.title.empty())
                page.lines.push_back({part.title, Style::title});
            if (!part.columns.empty())
                std::ranges::move(table_lines(part), std::back_inserter(page.lines));
            for (const std::string& line : part.lines)
                page.lines.push_back({line});
        }
    }
    if (page.lines.empty())
        page.lines.push_back({ended ? "" : "Nothing has been counted for it yet.", Style::dim});
    return page;
}

} // namespace gpusnoop
