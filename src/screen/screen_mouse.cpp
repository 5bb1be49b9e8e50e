// SPDX-License-Identifier: Apache-2.0
// What a click does: what a key does at the place that it points at.
#include "screen/list_view.hpp"
#include "screen/page.hpp"
#include "screen/screen_keys.hpp"

#include <algorithm>

namespace gpusnoop {

namespace {

constexpr int wheel_lines = 3;

std::vector<Action> press_times(ScreenState& state, const Snapshot& snapshot, Key key, int times)
{
    std::vector<Action> actions;
    for (int i = 0; i < times; ++i)
        std::ranges::move(press(state, snapshot, key), std::back_inserter(actions));
    return actions;
}

// The first click selects a row, the next one opens it.
std::vector<Action> click_line(ScreenState& state, const Snapshot& snapshot, const ListLine& line)
{
    if (!line.row) {
        state.selected = line.id();
        return press(state, snapshot, key::enter); // folds it
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
