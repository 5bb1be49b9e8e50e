// SPDX-License-Identifier: Apache-2.0
#include "screen/screen_state.hpp"

#include "screen/list_view.hpp"
#include "screen/page.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop {

void Messages::add(std::string text, double now)
{
    constexpr size_t kept = 200;
    // times in seconds; shown_in_a_hurry is used if many messages are waiting
    constexpr double shown = 5, shown_in_a_hurry = 1;
    constexpr double longest_queue = 20;

    const double start = all_.empty() ? now : std::max(now, all_.back().until);
    if (!all_.empty() && all_.back().text == text) {
        ++all_.back().times;
        all_.back().until = std::max(all_.back().until, now + shown);
        return;
    }
    if (all_.size() == kept)
        all_.pop_front();
    const bool hurry = start > now + longest_queue;
    all_.push_back({std::move(text), start + (hurry ? shown_in_a_hurry : shown), 1});
}

void Messages::withdraw(std::string_view text, double now)
{
    for (size_t i = all_.size(); i-- > 0 && all_[i].until > now;) {
        if (all_[i].text != text)
            continue;
        const double begin = i ? std::max(now, all_[i - 1].until) : now;
        const double freed = all_[i].until - begin;
        std::for_each(all_.begin() + static_cast<ptrdiff_t>(i), all_.end(),
                      [freed](Message& message) { message.until -= freed; });
    }
}

const Messages::Message* Messages::current(double now) const
{
    auto found = std::ranges::upper_bound(all_, now, {}, &Message::until);
    return found == all_.end() ? nullptr : &*found;
}

ScreenState::ScreenState(const ScreenOptions& options)
    : tool(options.tool), by_choices(options.by_choices), interval(options.interval), mouse(options.mouse),
      starting(options.starting)
{
    arrangement.sort = options.sort;
    arrangement.ascending = options.ascending;
    arrangement.then = options.then;
    arrangement.filter = options.filter;
    arrangement.tree = options.tree;
    if (options.columns) {
        shown = options.columns->shown;
        hidden = {options.columns->hidden.begin(), options.columns->hidden.end()};
        known = hidden;
        known.insert(shown.begin(), shown.end());
    }
}

namespace {

// Shows columns that are new in the snapshot, if they are shown by default.
void add_new_columns(ScreenState& state, const Snapshot& snapshot)
{
    auto place = state.shown.begin(); // a new column is inserted after the column that precedes it in the snapshot
    for (const TopColumn& column : snapshot.columns) {
        if (!column.column.in_text) // not marked as known, because the column may be shown with another grouping
            continue;
        const std::string key(column.column.key);
        if (state.known.insert(key).second && column.shown)
            place = state.shown.insert(place, key);
        if (auto at = std::ranges::find(state.shown, key); at != state.shown.end())
            place = at + 1;
    }
}

void clamp_list(ScreenState& state, const Snapshot& snapshot)
{
    const std::vector<ListLine> lines = list_lines(state, snapshot);
    if (std::ranges::find(snapshot.rows, state.reselect, &TopRow::id) != snapshot.rows.end())
        state.selected = std::exchange(state.reselect, {});
    if (!state.selected.empty()) {
        const auto is_it = [&](const ListLine& line) { return line.id() == state.selected; };
        auto found = std::ranges::find_if(lines, is_it);
        // If the selected row has disappeared, select the line that took its place.
        if (found == lines.end() && !lines.empty()) {
            found = lines.begin() + std::clamp(state.selected_at, 0, static_cast<int>(lines.size()) - 1);
            if (!found->row && !found->folded) // that line is a heading, so select the row below it
                ++found;
            state.selected = found->id();
        }
        state.selected_at = static_cast<int>(found - lines.begin());
    }
    widen(state, snapshot);
    const ListView view = view_list(state, snapshot, state.size);
    state.first_row = view.first;
    state.first_column = view.places.first;
}

void clamp_page(ScreenState& state, const Snapshot& snapshot)
{
    const Page page = page_of(state, snapshot, state.size);
    const auto count = static_cast<int>(page.lines.size());
    int at = -1;
    if (is_chooser(state.view))
        at = state.choice = std::clamp(state.choice, 0, std::max(count - 1, 0));
    state.page_top = scroll(state.page_top, at, count, page_height(page, state.size));
    state.page_left = std::max(state.page_left, 0);
}

} // namespace

void clamp(ScreenState& state, const Snapshot& snapshot)
{
    add_new_columns(state, snapshot);
    clamp_list(state, snapshot);
    if (state.view != View::list)
        clamp_page(state, snapshot);
}

Preferences chosen(const ScreenState& state, const ScreenOptions& initial)
{
    Preferences chosen;
    if (!state.by_chosen.empty())
        chosen.by = state.by_chosen;
    const Arrangement& now = state.arrangement;
    if (now.sort != initial.sort || now.ascending != initial.ascending)
        chosen.order = {now.sort, now.ascending};
    if (state.columns_chosen)
        chosen.columns = {state.shown, {state.hidden.begin(), state.hidden.end()}};
    if (state.interval != initial.interval)
        chosen.interval = state.interval;
    if (now.tree != initial.tree)
        chosen.tree = now.tree;
    if (state.mouse != initial.mouse)
        chosen.mouse = state.mouse;
    return chosen;
}

std::string interval_text(std::chrono::nanoseconds interval)
{
    const double seconds = std::chrono::duration<double>(interval).count();
    return fmt::format("{:.1f}s", seconds);
}

} // namespace gpusnoop
