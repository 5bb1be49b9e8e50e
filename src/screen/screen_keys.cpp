// SPDX-License-Identifier: Apache-2.0
// Keys in the list, and keys that work everywhere. Keys in pages and prompts are handled in screen_pages.cpp and
// screen_prompt.cpp.
#include "screen/screen_keys.hpp"

#include "base/text.hpp"
#include "screen/canvas.hpp"
#include "screen/list_view.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace gpusnoop {

namespace {

using namespace std::chrono_literals;

// Handler for one key press in the list. view_ is the list as it was before the key press.
class ListKeys {
public:
    ListKeys(ScreenState& state, const Snapshot& snapshot)
        : state_(state), snapshot_(snapshot), view_(view_list(state, snapshot, state.size))
    {}

    std::vector<Action> press(Key key)
    {
        if (key == key::escape && state_.arrangement.filter.empty() && !state_.within.id.empty())
            return leave();
        if (!fold(key) && !move(key) && !change(key))
            return command(key);
        return {};
    }

private:
    bool move(Key key);
    bool fold(Key key);
    bool change(Key key);
    std::vector<Action> command(Key key);

    void select(int line);
    void sort_beside(int direction);
    void freeze();
    void escape();
    std::vector<Action> open();
    std::vector<Action> leave();
    void plot_trouble(const TopRow& row);

    ScreenState& state_;
    const Snapshot& snapshot_;
    ListView view_;
};

bool ListKeys::move(Key key)
{
    if (key == key::left || key == key::right) {
        state_.first_column = view_.places.first + (key == key::left ? -1 : 1);
        return true;
    }
    const auto lines = lines_moved(key, std::max(view_.regions.rows.height - 1, 1));
    if (!lines)
        return false;
    if (key == key::home) {
        state_.selected.clear();
        state_.first_row = 0;
        return true;
    }
    if (key == key::page_up || key == key::page_down)
        state_.first_row = view_.first + *lines;
    select(view_.selected + *lines);
    return true;
}

// Handles the keys that hide or show a branch's rows, or select the heading above a row (Left). Returns false for other
// keys.
bool ListKeys::fold(Key key)
{
    if (!state_.arrangement.tree || view_.lines.empty())
        return false;
    if (key == U'*') {
        const bool all = std::ranges::all_of(view_.lines, [](const ListLine& line) { return !line.row; });
        const ListLine* const at = view_.selected < 0 ? nullptr : &view_.lines[static_cast<size_t>(view_.selected)];
        if (!all && at)
            state_.selected = ListLine{.branch = at->branch}.id();
        state_.folded.clear();
        for (const ListLine& line : view_.lines)
            if (!all && !line.row)
                state_.folded.emplace(line.branch);
        return true;
    }
    if (view_.selected < 0)
        return false;
    const ListLine& line = view_.lines[static_cast<size_t>(view_.selected)];
    if (line.row) {
        if (key != key::left || view_.places.first > 0)
            return false;
        state_.selected = ListLine{.branch = line.branch}.id();
        return true;
    }
    const bool enter = key == key::enter || key == U'\n';
    const bool hides = key == U'-' || key == key::left || (enter && !line.folded);
    if (!hides && !enter && key != U'+' && key != U'=' && key != key::right)
        return false;
    if (!hides)
        state_.folded.erase(std::string(line.branch));
    else
        state_.folded.emplace(line.branch);
    return true;
}

void ListKeys::select(int line)
{
    if (view_.lines.empty())
        return;
    line = std::clamp(line, 0, static_cast<int>(view_.lines.size()) - 1);
    state_.selected = view_.lines[static_cast<size_t>(line)].id();
}

bool ListKeys::change(Key key)
{
    Arrangement& arrangement = state_.arrangement;
    switch (key) {
    case U'<':
    case U',':
        sort_beside(-1);
        break;
    case U'>':
    case U'.':
        sort_beside(1);
        break;
    case U'r':
    case U'R':
        arrangement.ascending = !arrangement.ascending;
        arrangement.frozen.clear();
        break;
    case U'f':
        freeze();
        break;
    case U't':
    case key::f5:
        arrangement.tree = !arrangement.tree;
        break;
    case U'n':
        search_row(state_, snapshot_, 1, false);
        break;
    case U'N':
        search_row(state_, snapshot_, -1, false);
        break;
    case key::escape:
        escape();
        break;
    default:
        return false;
    }
    return true;
}

// Sorts by the column next to the sort column, and scrolls to that column.
void ListKeys::sort_beside(int direction)
{
    const auto count = static_cast<int>(view_.columns.size());
    if (count == 0)
        return;
    const auto key_of = [&](size_t index) { return snapshot_.columns[index].column.key; };
    auto now = std::ranges::find(view_.columns, state_.arrangement.sort, key_of);
    const int at = now == view_.columns.end() ? (direction > 0 ? 0 : count - 1)
                                              : static_cast<int>(now - view_.columns.begin()) + direction;
    if (at < 0 || at >= count)
        return;
    sort_by(state_, snapshot_, key_of(view_.columns[static_cast<size_t>(at)]));
    state_.first_column = scroll_to_column(state_.size.columns, view_.widths, view_.staying, view_.places.first, at);
}

void ListKeys::freeze()
{
    std::vector<std::string>& frozen = state_.arrangement.frozen;
    if (!frozen.empty())
        return frozen.clear();
    for (const TopRow* row : arrange(snapshot_, state_.arrangement))
        frozen.push_back(row->id);
}

void ListKeys::escape()
{
    if (!state_.arrangement.filter.empty())
        return state_.arrangement.filter.clear();
    state_.selected.clear();
    state_.first_row = 0;
}

// Plots the column to which the row's worst trouble refers, or the sort column if the row has no trouble.
void ListKeys::plot_trouble(const TopRow& row)
{
    if (snapshot_.troubles)
        for (const Trouble& trouble : *snapshot_.troubles)
            if (std::ranges::find(trouble.rows, row.id) != trouble.rows.end() &&
                column_index(snapshot_.columns, trouble.column)) {
                state_.plotted = trouble.column;
                return;
            }
    if (state_.plotted.empty())
        plot_beside(state_, snapshot_, 0);
}

std::vector<Action> ListKeys::open()
{
    if (view_.selected < 0 || !view_.lines[static_cast<size_t>(view_.selected)].row)
        return {};
    const TopRow& row = *view_.lines[static_cast<size_t>(view_.selected)].row;
    static constexpr std::string_view of_processes[] = {"container", "pod", "namespace", "cgroup", "device"};
    if (snapshot_.replayed.empty() && std::ranges::find(of_processes, snapshot_.by) != std::end(of_processes)) {
        const bool by_name =
            // in a table by device, `branch` names the owner of the processes instead of the device
            row.branch.empty() || snapshot_.by == "device";
        state_.within = {row.id, by_name ? name_of(state_, snapshot_, row) : row.branch, snapshot_.by};
        state_.selected.clear();
        state_.first_row = 0;
        state_.arrangement.frozen.clear();
        return {{Action::within, row.id}, {Action::refresh, {}}};
    }
    state_.open = state_.selected = row.id;
    state_.open_name = name_of(state_, snapshot_, row);
    state_.view = View::detail;
    state_.page_top = state_.page_left = 0;
    plot_trouble(row);
    return {{Action::open, row.id}, {Action::refresh, {}}};
}

// Leaves the list of one row's processes, returns to the list of pods, containers, ..., and selects that row.
std::vector<Action> ListKeys::leave()
{
    state_.reselect = std::exchange(state_.within, {}).id;
    state_.selected.clear();
    state_.arrangement.frozen.clear();
    return {{Action::within, {}}, {Action::refresh, {}}};
}

std::vector<Action> ListKeys::command(Key key)
{
    switch (key) {
    case U'q':
    case key::f10:
        return {{Action::quit, {}}};
    case U'\n':
    case key::enter:
        return open();
    case U'+':
    case U'=':
        return step_interval(state_, 1);
    case U'-':
        return step_interval(state_, -1);
    case U's':
    case key::f6:
        open_chooser(state_, snapshot_, View::choose_sort);
        break;
    case U'b':
    case key::f7:
        open_chooser(state_, snapshot_, View::choose_by);
        break;
    case U'c':
    case key::f2:
        open_chooser(state_, snapshot_, View::choose_columns);
        break;
    case U'/':
    case key::f4:
        open_prompt(state_, snapshot_, Prompt::filter);
        break;
    case U'\\':
    case key::f3:
        open_prompt(state_, snapshot_, Prompt::search);
        break;
    case U'd':
        open_prompt(state_, snapshot_, Prompt::interval);
        break;
    default:
        if (key >= U'1' && key <= U'9' && key - U'1' < state_.by_choices.size())
            return choose_by(state_, snapshot_, state_.by_choices[key - U'1']);
        report_unknown_key(state_, key);
    }
    return {};
}

// Handles keys that control the replay of a recording, in any view. Returns false for other keys.
bool press_replayed(Key key, std::vector<Action>& actions)
{
    struct Binding {
        Key key;
        Action::Kind kind;
        int number;
    };
    constexpr Binding all[] = {{U' ', Action::play, 0},  {U'p', Action::play, 0},   {U'+', Action::speed, 1},
                               {U'=', Action::speed, 1}, {U'-', Action::speed, -1}, {U'[', Action::step, -1},
                               {U']', Action::step, 1},  {U'{', Action::leap, -1},  {U'}', Action::leap, 1}};
    const auto* const found = std::ranges::find(all, key, &Binding::key);
    if (found == std::end(all))
        // these keys are ignored, because they make no sense in a replay
        return key == U'd' || key == U'b' || key == key::f7 || key == U'K';
    actions.push_back({.kind = found->kind, .number = found->number});
    return true;
}

// Handles keys that have the same effect in any view. Returns false for other keys.
bool press_anywhere(ScreenState& state, const Snapshot& snapshot, Key key, std::vector<Action>& actions)
{
    switch (key) {
    case U' ':
    case U'p':
        state.paused = !state.paused;
        state.behind = 0;
        actions.push_back({Action::refresh, {}});
        return true;
    case U'w':
        open_prompt(state, snapshot, Prompt::save);
        return true;
    case U'K':
        ask_for_signal(state, snapshot);
        return true;
    case U'z':
        actions.push_back({Action::theme, {}});
        return true;
    case key::repaint:
        actions.push_back({Action::repaint, {}});
        return true;
    case U'?':
    case key::f1:
        open_page(state, View::help);
        return true;
    case U'M':
        state.mouse = !state.mouse;
        state.messages.add(state.mouse ? "mouse on: M turns it off" : "mouse off: the terminal selects text",
                           state.now);
        actions.push_back({Action::mouse, {}});
        return true;
    case U'm':
        open_page(state, View::messages);
        return true;
    case U'!':
        open_page(state, View::troubles);
        return true;
    default:
        return false;
    }
}

} // namespace

std::optional<int> lines_moved(Key key, int page)
{
    constexpr int all = INT32_MAX / 2;
    const std::pair<Key, int> moves[] = {
        {key::up, -1},          {U'k', -1},        {key::down, 1}, {U'j', 1}, {key::page_up, -page},
        {key::page_down, page}, {key::home, -all}, {key::end, all}};
    const auto* const found = std::ranges::find(moves, key, &std::pair<Key, int>::first);
    return found == std::end(moves) ? std::nullopt : std::optional(found->second);
}

void report_unknown_key(ScreenState& state, Key key)
{
    std::string name;
    if (key >= key::f1 && key <= key::f12)
        name = "F" + std::to_string(key - key::f1 + 1);
    else if (key > U' ' && key <= 0x10ffff && columns_of(key) > 0)
        append_utf8(name, key);
    else
        return;
    if (state.unknown_key != state.now)
        state.messages.add("no such key: " + name + " (? lists all keys)", state.now);
    state.unknown_key = state.now;
}

std::vector<Action> step_interval(ScreenState& state, int direction)
{
    static constexpr std::array steps = {100ms, 200ms, 500ms, 1000ms, 2000ms, 5000ms, 10'000ms, 30'000ms, 60'000ms};
    const auto* next = direction > 0 ? std::ranges::upper_bound(steps, state.interval)
                                     : std::ranges::lower_bound(steps, state.interval);
    if (direction > 0 ? next == steps.end() : next == steps.begin())
        return {};
    state.interval = direction > 0 ? *next : *(next - 1);
    return {{Action::interval, {}}};
}

std::vector<Action> press(ScreenState& state, const Snapshot& snapshot, Key key)
{
    std::vector<Action> actions;
    const bool space_chooses = state.view == View::choose_columns && key == U' ';
    if (const auto click = click_of(key))
        actions = press_mouse(state, snapshot, *click);
    else if (state.prompt != Prompt::none)
        actions = press_in_prompt(state, snapshot, key);
    else if (!snapshot.replayed.empty() && !space_chooses && press_replayed(key, actions))
        ;
    else if (!space_chooses && press_anywhere(state, snapshot, key, actions))
        ;
    else if (state.view != View::list)
        actions = press_in_page(state, snapshot, key);
    else if (key == U'h')
        open_page(state, View::help);
    else
        actions = ListKeys(state, snapshot).press(key);
    clamp(state, snapshot);
    return actions;
}

} // namespace gpusnoop
