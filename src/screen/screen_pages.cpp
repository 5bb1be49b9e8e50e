// SPDX-License-Identifier: Apache-2.0
// Handlers for keys pressed in pages: the open row, help, messages, troubles and choosers.
#include "screen/page.hpp"
#include "screen/screen_keys.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace gpusnoop {

namespace {

// Shows or hides a column. A newly shown column becomes the last one.
void toggle(ScreenState& state, const std::string& key)
{
    auto found = std::ranges::find(state.shown, key);
    if (found == state.shown.end()) {
        state.shown.push_back(key);
        state.hidden.erase(key);
    } else if (state.shown.size() > 1) {
        state.shown.erase(found);
        state.hidden.insert(key);
    }
    state.columns_chosen = true;
}

void shift(ScreenState& state, const std::string& key, int direction)
{
    auto found = std::ranges::find(state.shown, key);
    if (found == state.shown.end() || (direction < 0 && found == state.shown.begin()) ||
        (direction > 0 && std::next(found) == state.shown.end()))
        return;
    std::iter_swap(found, found + direction);
    state.choice += direction;
    state.columns_chosen = true;
}

void follow_choice(ScreenState& state, const Snapshot& snapshot, const std::string& key)
{
    const std::vector<Choice> all = choices(state, snapshot);
    auto found = std::ranges::find(all, key, &Choice::key);
    if (found != all.end())
        state.choice = static_cast<int>(found - all.begin());
}

std::vector<Action> press_in_chooser(ScreenState& state, const Snapshot& snapshot, Key key)
{
    const std::vector<Choice> all = choices(state, snapshot);
    if (state.choice < 0 || static_cast<size_t>(state.choice) >= all.size())
        return {};
    const std::string chosen = all[static_cast<size_t>(state.choice)].key;
    const bool enter = key == key::enter || key == U'\n';
    if (state.view == View::choose_columns) {
        if (key == U' ') {
            toggle(state, chosen);
            follow_choice(state, snapshot, chosen);
        } else if (key == U'<' || key == U'>') {
            shift(state, chosen, key == U'<' ? -1 : 1);
        } else if (enter || key == U'c' || key == key::f2) {
            state.view = View::list;
        } else {
            report_unknown_key(state, key);
        }
        return {};
    }
    if (!enter) {
        report_unknown_key(state, key);
        return {};
    }
    const bool sorts = state.view == View::choose_sort;
    state.view = View::list;
    if (!sorts)
        return choose_by(state, snapshot, chosen);
    sort_by(state, snapshot, chosen);
    return {};
}

std::vector<Action> press_in_detail(ScreenState& state, const Snapshot& snapshot, Key key)
{
    constexpr int step = 8;
    switch (key) {
    case key::left:
    case key::right:
    case U'h':
        plot_beside(state, snapshot, key == key::left ? -1 : 1);
        break;
    case U'<':
    case U'>':
        state.page_left += key == U'<' ? -step : step;
        break;
    case U'+':
    case U'=':
    case U'-':
        return step_interval(state, key == U'-' ? -1 : 1);
    case U'd':
        open_prompt(state, snapshot, Prompt::interval);
        break;
    default:
        report_unknown_key(state, key);
    }
    return {};
}

std::vector<Action> close(ScreenState& state)
{
    const bool was_open = state.view == View::detail;
    const bool aside = state.view == View::help || state.view == View::messages || state.view == View::troubles;
    state.view = aside ? state.before : View::list;
    state.page_top = state.page_left = 0;
    if (!was_open)
        return {};
    state.open.clear();
    return {{Action::open, {}}};
}

} // namespace

void sort_by(ScreenState& state, const Snapshot& snapshot, std::string_view key)
{
    auto column = column_index(snapshot.columns, key);
    state.arrangement.sort = key;
    // texts are sorted from A to Z
    state.arrangement.ascending =
        column && snapshot.columns[*column].column.unit == Unit::text && !snapshot.columns[*column].by_severity;
    state.arrangement.frozen.clear();
    constexpr double shown = 5; // seconds
    state.about.clear();
    if (column && !snapshot.columns[*column].about.empty())
        state.about = fmt::format("{}: {}", snapshot.columns[*column].column.header, snapshot.columns[*column].about);
    state.about_until = state.now + shown;
}

std::vector<Action> choose_by(ScreenState& state, const Snapshot& snapshot, const std::string& by)
{
    const bool was_within = !std::exchange(state.within, {}).id.empty();
    state.by_chosen = by;
    if (by == snapshot.by && !was_within)
        return {};
    state.selected.clear();
    state.first_row = 0;
    state.arrangement.frozen.clear();
    if (was_within)
        return {{Action::within, {}}, {Action::by, by}, {Action::refresh, {}}};
    return {{Action::by, by}, {Action::refresh, {}}};
}

void open_page(ScreenState& state, View view)
{
    if (state.view == View::list || state.view == View::detail)
        state.before = state.view;
    else if (is_chooser(state.view))
        state.before = View::list;
    state.view = view;
    state.page_top = state.page_left = 0;
    if (view == View::messages)
        state.page_top = INT32_MAX / 2; // a large value, so that the newest messages are visible
}

void open_chooser(ScreenState& state, const Snapshot& snapshot, View view)
{
    state.view = view;
    state.page_top = state.page_left = 0;
    state.choice = 0;
    if (view == View::choose_columns)
        return;
    const std::vector<Choice> all = choices(state, snapshot);
    auto chosen = std::ranges::find(all, true, &Choice::chosen);
    if (chosen != all.end())
        state.choice = static_cast<int>(chosen - all.begin());
}

void plot_beside(ScreenState& state, const Snapshot& snapshot, int direction)
{
    const std::vector<size_t> columns = plotted_columns(snapshot);
    if (columns.empty())
        return;
    const auto key_of = [&](size_t index) { return snapshot.columns[index].column.key; };
    const auto find = [&](std::string_view key) { return std::ranges::find(columns, key, key_of); };
    auto now = find(direction ? state.plotted : state.arrangement.sort);
    if (now == columns.end() && !direction) // the sort column has no plot (text or an id)
        now = find(state.arrangement.then);
    const auto count = static_cast<int>(columns.size());
    const int at = now == columns.end() ? 0 : static_cast<int>(now - columns.begin());
    state.plotted = key_of(columns[static_cast<size_t>((at + direction + count) % count)]);
}

std::vector<Action> press_in_page(ScreenState& state, const Snapshot& snapshot, Key key)
{
    if (key == key::escape || key == U'q' || key == key::f10)
        return key == key::f10 ? std::vector<Action>{{Action::quit, {}}} : close(state);
    if (const auto lines = lines_moved(key, page_height(page_of(state, snapshot, state.size), state.size))) {
        // clamp() will limit the result to the last line
        (is_chooser(state.view) ? state.choice : state.page_top) += *lines;
        return {};
    }
    if (is_chooser(state.view))
        return press_in_chooser(state, snapshot, key);
    if (state.view == View::detail)
        return press_in_detail(state, snapshot, key);
    if (key == U'<' || key == key::left)
        state.page_left -= 8;
    else if (key == U'>' || key == key::right)
        state.page_left += 8;
    else if (key == key::enter || key == U'\n' || key == U'h')
        return close(state);
    else
        report_unknown_key(state, key);
    return {};
}

} // namespace gpusnoop
