// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "screen/canvas.hpp"
#include "screen/draw.hpp"
#include "screen/history.hpp"
#include "screen/list_view.hpp"
#include "screen/page.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>
#include <utility>

namespace gpusnoop {

// Drawing of lines outside the list: GPU bars, the footer, and the page of an open row.

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Draws a bar such as "[|||||    45%]", with the text over its right end. share: 0..1, or NaN if unknown.
void draw_bar(Canvas& canvas, int x, int y, int width, double share, std::string_view text)
{
    const int inside = width - 2;
    if (inside < 1)
        return;
    canvas.write(x, y, "[", Style::dim);
    canvas.write(x + 1, y, bar(share, inside), Style::bar);
    canvas.write_right(x + 1, y, text, std::isnan(share) ? Style::dim : Style::plain, inside);
    canvas.write(x + width - 1, y, "]", Style::dim);
}

std::string memory_text(const GpuState& gpu)
{
    const auto text = [](const std::optional<uint64_t>& bytes) { return bytes ? human_bytes(*bytes) : "-"; };
    return fmt::format("{}/{}", text(gpu.memory_used), text(gpu.memory_total));
}

double memory_share(const GpuState& gpu)
{
    if (!gpu.memory_used || !gpu.memory_total || *gpu.memory_total == 0)
        return unknown;
    return static_cast<double>(*gpu.memory_used) / static_cast<double>(*gpu.memory_total);
}

constexpr int both_bars = 28; // minimum width for two bars side by side, in columns
constexpr int name_room = 20; // width of a GPU's name, in columns

// Width available for the names of processes that use the GPU, beside its bars; 0 if only a few letters would fit.
int room_for_users(int columns, const GpuState& gpu)
{
    constexpr int least = 8, most = 32;
    const int room = std::min({columns_of(gpu.users), columns - both_bars - 1, most});
    return room < std::min(columns_of(gpu.users), least) ? 0 : room;
}

using Hint = std::pair<std::string_view, std::string_view>;

void draw_hints(Canvas& canvas, int x, const Rect& rect, std::span<const Hint> hints)
{
    for (const auto& [key, what] : hints) {
        const int width = columns_of(key) + columns_of(what) + 1;
        if (x + width > rect.width)
            return;
        x += canvas.write(x, rect.y, key, Style::hint);
        canvas.write(x, rect.y, what, Style::dim);
        x += columns_of(what) + 1;
    }
}

// Draws the prompt and its input, scrolled so that the end of the input is visible.
void draw_prompt(Canvas& canvas, const Rect& rect, const ScreenState& state)
{
    static constexpr std::string_view labels[] = {"", "Filter: ", "Search: ", "Interval (seconds): ", "Save as: "};
    if (state.prompt == Prompt::signal) {
        canvas.write(0, rect.y, fmt::format("Send SIGTERM to {}? y/N; 9: SIGKILL", state.signal_name), Style::notice);
        return;
    }
    const std::string_view label = labels[static_cast<size_t>(state.prompt)];
    const int x = canvas.write(0, rect.y, label, Style::notice);
    const int room = rect.width - x - 1;
    std::string_view input = state.input;
    while (columns_of(input) > room && !input.empty())
        input.remove_prefix(first_code_point(input).length ? first_code_point(input).length : 1);
    // a proposed text is drawn as selected, because typing replaces it
    const Style style = state.proposed ? Style::selected : Style::plain;
    canvas.write(x + canvas.write(x, rect.y, input, style), rect.y, "_", Style::notice);
}

} // namespace

void draw_gpu(Canvas& canvas, const Rect& rect, const GpuState& gpu)
{
    int x = rect.x + canvas.write(rect.x, rect.y, fmt::format("GPU{} ", gpu.index), Style::dim, rect.width);
    int end = rect.x + rect.width;
    if (gpu.power_watts && rect.width >= 34) {
        const std::string power = fmt::format("{:4.0f}W", *gpu.power_watts);
        end -= static_cast<int>(power.size());
        canvas.write(end, rect.y, power, Style::device);
    }
    const bool named = rect.width >= 72 && !gpu.name.empty();
    if (const int room = room_for_users(end - x - (named ? name_room + 1 : 0), gpu); room > 0) {
        end -= room + 1;
        canvas.write(end + 1, rect.y, gpu.users, Style::plain, room);
    }
    if (named) {
        canvas.write(x, rect.y, gpu.name, Style::plain, name_room);
        x += name_room + 1;
    }
    const std::string use = gpu.utilization ? fmt::format("{:.0f}%", *gpu.utilization) : "-";
    const bool both = end - x >= both_bars;
    const int width = both ? (end - x - 1) * 2 / 5 : end - x;
    draw_bar(canvas, x, rect.y, width, gpu.utilization.value_or(unknown) / 100, use);
    if (both)
        draw_bar(canvas, x + width + 1, rect.y, end - x - width - 1, memory_share(gpu), memory_text(gpu));
}

void draw_footer(Canvas& canvas, const Rect& rect, const ScreenState& state)
{
    static constexpr Hint list_hints[] = {
        {"?", "Help"},   {"q", "Quit"}, {"Enter", "Open"}, {"!", "Trouble"}, {"s", "Sort"},
        {"/", "Filter"}, {"b", "By"},   {"t", "Tree"},     {"c", "Columns"}, {"Space", "Pause"},
        {"f", "Freeze"}, {"w", "Save"}, {"\\", "Search"},
    };
    static constexpr Hint page_hints[] = {
        {"Esc", "Back"}, {"Up/Down", "Scroll"}, {"Left/Right", "History"}, {"w", "Save"}, {"?", "Help"},
    };
    static constexpr Hint starting_hints[] = {{"q", "Quit"}};
    static constexpr Hint other_hints[] = {{"Esc", "Back"}, {"Up/Down", "Move"}};
    if (rect.height == 0)
        return;
    if (state.prompt != Prompt::none)
        return draw_prompt(canvas, rect, state);
    if (const Messages::Message* message = state.messages.current(state.now)) {
        canvas.write(0, rect.y, message->text, Style::notice, rect.width);
        return;
    }
    if (!state.starting.empty())
        return draw_hints(canvas, 0, rect, starting_hints);
    if (state.view == View::list && !state.about.empty() && state.now < state.about_until) {
        canvas.write(0, rect.y, state.about, Style::plain, rect.width);
        return;
    }
    int x = 0;
    const std::string& filter = state.arrangement.filter;
    if (state.view == View::list && !filter.empty())
        x = canvas.write(0, rect.y, fmt::format("Filter: {} (Esc clears) ", filter), Style::notice);
    if (state.view == View::list)
        draw_hints(canvas, x, rect, list_hints);
    else if (state.view == View::detail)
        draw_hints(canvas, x, rect, page_hints);
    else
        draw_hints(canvas, x, rect, other_hints);
}

namespace {

// Formats a value of a column with this unit, such as "12.3M".
std::string value_text(Unit unit, double value)
{
    std::string text;
    const bool counts = unit == Unit::count || unit == Unit::hex;
    CellText().append(text, unit, counts && value >= 0 && value < 1e18 ? Cell(static_cast<uint64_t>(value)) : value);
    return text;
}

// Title and plot of the history of the plotted column; empty if there is no room.
std::vector<PageLine> history_lines(const ScreenState& state, const Snapshot& snapshot, Size size)
{
    const auto column = column_index(snapshot.columns, state.plotted);
    const int height = size.lines >= 12 ? std::clamp(size.lines / 4, 3, 10) : 0;
    if (!column || height == 0)
        return {};
    const TopColumn& of = snapshot.columns[*column];
    constexpr int scale = 8; // width of the two labels beside the plot, which show the largest value and 0
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
    // The label of the oldest value is drawn below that value, or further left if it would overlap "now".
    const int end = std::max(std::min(scale + width - filled + 1, size.columns - 4), 1);
    const std::string axis = fmt::format("{:>{}}", begin, end);
    lines.push_back({fmt::format("{}{:>{}}", axis, "now", std::max(size.columns - end, 4)), Style::dim});
    return lines;
}

// Formats a table as lines. Each column is as wide as its widest cell.
std::vector<PageLine> table_lines(const DetailPart& part)
{
    CellText cells;
    std::vector<size_t> shown;
    for (size_t i = 0; i < part.columns.size(); ++i)
        if (part.columns[i].in_text)
            shown.push_back(i);

    std::vector<std::vector<std::string>> texts(1); // the first line contains the headers
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
    for (size_t i = 0; i < lines.size(); ++i) { // the first line contains the headers
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
        const bool identifies_row = column.key == "pid" || column.key == "ns_pid" || column.key == "tid";
        if (!is_left_aligned(column.unit) && column.in_text && !identifies_row)
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
        page.lines.push_back({ended ? "" : "Nothing has been counted for this row yet.", Style::dim});
    return page;
}

} // namespace gpusnoop
