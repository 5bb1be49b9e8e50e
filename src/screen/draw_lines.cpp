// SPDX-License-Identifier: Apache-2.0
// The lines of a screen that are no table: the bars of a GPU, the footer.
#include "screen/draw.hpp"

#include "base/text.hpp"
#include "screen/plot.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>
#include <utility>

namespace gpusnoop {

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// "[|||||    45%]": the text is over the right end of the bar. A share that is not known is NaN.
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

constexpr int both_bars = 28; // columns that they need
constexpr int name_room = 20; // of a GPU

// What the bars can do without; a few letters of a name say nothing.
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

// What is typed in, its end in view.
void draw_prompt(Canvas& canvas, const Rect& rect, const ScreenState& state)
{
    static constexpr std::string_view labels[] = {"", "Filter: ", "Search: ", "Interval (seconds): ", "Save as: "};
    if (state.prompt == Prompt::signal) {
        canvas.write(0, rect.y, fmt::format("Send SIGTERM to {}? y/N; 9: SIGKILL", state.asked_name), Style::notice);
        return;
    }
    const std::string_view label = labels[static_cast<size_t>(state.prompt)];
    const int x = canvas.write(0, rect.y, label, Style::notice);
    const int room = rect.width - x - 1;
    std::string_view input = state.input;
    while (columns_of(input) > room && !input.empty())
        input.remove_prefix(first_code_point(input).length ? first_code_point(input).length : 1);
    const Style style = state.proposed ? Style::selected : Style::plain; // typing takes its place
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

} // namespace gpusnoop
