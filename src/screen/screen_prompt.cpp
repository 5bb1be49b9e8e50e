// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "screen/canvas.hpp"
#include "screen/list_view.hpp"
#include "screen/page.hpp"
#include "screen/screen_keys.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <fmt/chrono.h>
#include <utility>

namespace gpusnoop {

// Keys in prompts (filter, search, interval, file name, confirmation of a signal), and mouse events.

namespace {

std::string file_name(const ScreenState& state, const Snapshot& snapshot)
{
    const auto seconds = static_cast<time_t>(snapshot.wall_ns / 1'000'000'000);
    tm local{};
    ::localtime_r(&seconds, &local);
    return fmt::format("{}-{:%Y%m%d-%H%M%S}.txt", state.tool, local);
}

std::vector<Action> set_interval(ScreenState& state)
{
    const auto seconds = parse_number<double>(state.input);
    const auto interval = seconds ? interval_of(*seconds) : std::nullopt;
    if (!interval) {
        state.messages.add("an interval must be 0.1 to 60 seconds, not '" + state.input + "'", state.now);
        return {};
    }
    state.interval = *interval;
    return {{Action::interval, {}}};
}

// Applies the filter or search text while it is typed.
void apply_input(ScreenState& state, const Snapshot& snapshot)
{
    if (state.prompt == Prompt::filter)
        state.arrangement.filter = state.input;
    if (state.prompt == Prompt::search) {
        state.search = state.input;
        search_row(state, snapshot, 1, true);
    }
}

std::vector<Action> submit(ScreenState& state, Prompt prompt)
{
    if (prompt == Prompt::interval && !state.input.empty())
        return set_interval(state);
    if (prompt == Prompt::save && !state.input.empty())
        return {{Action::save, state.input}};
    return {};
}

void edit(std::string& input, Key key)
{
    constexpr size_t longest = 1024; // in bytes
    if (key == key::clear_line) {
        input.clear();
    } else if (key == key::backspace || key == 0x7f || key == 0x08) {
        while (!input.empty() && (input.back() & 0xc0) == 0x80)
            input.pop_back();
        if (!input.empty())
            input.pop_back();
    } else if (key >= 0x20 && key <= 0x10ffff && columns_of(key) >= 0 && input.size() < longest) {
        append_utf8(input, key);
    }
}

} // namespace

void open_prompt(ScreenState& state, const Snapshot& snapshot, Prompt prompt)
{
    state.prompt = prompt;
    state.input.clear();
    state.proposed = prompt == Prompt::save;
    if (prompt == Prompt::filter)
        state.input = state.before_input = state.arrangement.filter;
    if (prompt == Prompt::search)
        state.before_input = state.search;
    if (prompt == Prompt::save)
        state.input = file_name(state, snapshot);
}

void ask_for_signal(ScreenState& state, const Snapshot& snapshot)
{
    if (state.view != View::list && state.view != View::detail)
        return report_unknown_key(state, U'K');
    const ListView view = view_list(state, snapshot, state.size);
    const TopRow* row = view.selected < 0 ? nullptr : view.lines[static_cast<size_t>(view.selected)].row;
    if (state.view == View::detail) {
        const auto found = std::ranges::find(snapshot.rows, state.open, &TopRow::id);
        row = found == snapshot.rows.end() ? nullptr : &*found;
    }
    if (!row || !row->process) {
        state.messages.add(
            row ? "K sends a signal to a process, but this row is not a process; press 1 to list processes"
                : "there is no process to send a signal to",
            state.now);
        return;
    }
    state.signal_target = *row->process;
    state.signal_name = name_of(state, snapshot, *row);
    state.selected = row->id;
    state.prompt = Prompt::signal;
}

namespace {

// Handles the answer to the question whether to send the signal. All keys except y and 9 mean no.
std::vector<Action> answer(ScreenState& state, Key key)
{
    state.prompt = Prompt::none;
    if (key == U'y' || key == U'Y' || key == U'9')
        return {{Action::signal, state.signal_name, state.signal_target, key == U'9' ? SIGKILL : SIGTERM}};
    state.messages.add("no signal was sent", state.now);
    return {};
}

} // namespace

std::vector<Action> press_in_prompt(ScreenState& state, const Snapshot& snapshot, Key key)
{
    if (state.prompt == Prompt::signal)
        return answer(state, key);
    if (key == key::enter || key == U'\n')
        return submit(state, std::exchange(state.prompt, Prompt::none));
    if (key == key::escape) {
        if (state.prompt == Prompt::filter)
            state.arrangement.filter.clear();
        if (state.prompt == Prompt::search)
            state.search = state.before_input;
        state.prompt = Prompt::none;
        return {};
    }
    // Typing a character replaces the proposed name; other keys, such as backspace, edit it.
    if (std::exchange(state.proposed, false) && key >= 0x20 && key != 0x7f && key <= 0x10ffff)
        state.input.clear();
    edit(state.input, key);
    apply_input(state, snapshot);
    return {};
}

void search_row(ScreenState& state, const Snapshot& snapshot, int direction, bool here)
{
    if (state.search.empty())
        return;
    const ListView view = view_list(state, snapshot, state.size);
    const auto count = static_cast<int>(view.lines.size());
    int line = std::max(view.selected, 0) - (here ? direction : 0);
    for (int tried = 0; tried < count; ++tried) {
        line = (line + direction + count) % count;
        const TopRow* row = view.lines[static_cast<size_t>(line)].row;
        if (row && has_text(*row, state.search)) {
            state.selected = row->id;
            return;
        }
    }
    if (!here)
        state.messages.add("no row contains '" + state.search + "'", state.now);
}

// Mouse events. Most act like a key.

namespace {

constexpr int wheel_lines = 3;

std::vector<Action> press_times(ScreenState& state, const Snapshot& snapshot, Key key, int times)
{
    std::vector<Action> actions;
    for (int i = 0; i < times; ++i)
        std::ranges::move(press(state, snapshot, key), std::back_inserter(actions));
    return actions;
}

// A click selects a row; a click on the selected row opens it.
std::vector<Action> click_line(ScreenState& state, const Snapshot& snapshot, const ListLine& line)
{
    if (!line.row) {
        state.selected = line.id();
        return press(state, snapshot, key::enter); // hides or shows the branch's rows
    }
    if (state.selected == line.row->id)
        return press(state, snapshot, key::enter);
    state.selected = line.row->id;
    return {};
}

std::vector<Action> click_header(ScreenState& state, const Snapshot& snapshot, const ListView& view, int x)
{
    const auto is_it = [x](const PlacedColumn& placed) { return x >= placed.x && x <= placed.x + placed.width; };
    const auto placed = std::ranges::find_if(view.places.placed, is_it);
    if (placed == view.places.placed.end())
        return {};
    const std::string_view key = snapshot.columns[view.columns[static_cast<size_t>(placed->column)]].column.key;
    if (key == state.arrangement.sort)
        return press(state, snapshot, U'r');
    sort_by(state, snapshot, key);
    return {};
}

std::vector<Action> click_list(ScreenState& state, const Snapshot& snapshot, const Click& click)
{
    const ListView view = view_list(state, snapshot, state.size);
    const auto is_in = [&](const Rect& rect) { return click.y >= rect.y && click.y < rect.y + rect.height; };
    if (is_in(view.regions.header))
        return click_header(state, snapshot, view, click.x);
    const int line = view.first + click.y - view.regions.rows.y;
    if (is_in(view.regions.rows) && line < static_cast<int>(view.lines.size()))
        return click_line(state, snapshot, view.lines[static_cast<size_t>(line)]);
    return {};
}

std::vector<Action> click_page(ScreenState& state, const Snapshot& snapshot, const Click& click)
{
    const Page page = page_of(state, snapshot, state.size);
    const int line = state.page_top + click.y - 1 - static_cast<int>(page.above.size());
    if (!is_chooser(state.view) || line < 0 || line >= static_cast<int>(page.lines.size()))
        return {};
    if (line == state.choice)
        return press(state, snapshot, state.view == View::choose_columns ? U' ' : key::enter);
    state.choice = line;
    return {};
}

} // namespace

std::vector<Action> press_mouse(ScreenState& state, const Snapshot& snapshot, const Click& click)
{
    if (state.prompt != Prompt::none)
        return {};
    if (click.kind != Click::press)
        return press_times(state, snapshot, click.kind == Click::wheel_up ? key::up : key::down, wheel_lines);
    return state.view == View::list ? click_list(state, snapshot, click) : click_page(state, snapshot, click);
}

} // namespace gpusnoop
