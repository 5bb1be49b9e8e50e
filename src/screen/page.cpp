// SPDX-License-Identifier: Apache-2.0
#include "screen/page.hpp"

#include "screen/list_view.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop {

namespace {

using KeyHelp = std::pair<std::string_view, std::string_view>;

constexpr KeyHelp key_help[] = {
    {"Up Down k j", "select a row; it stays selected wherever it moves"},
    {"PgUp PgDn", "a page up or down"},
    {"Home End", "Home: stay on the first row, even as rows move; End: select the last row"},
    {"Left Right", "scroll the columns"},
    {"Enter", "open the row: owner, history, kernels, copies, waits; on a pod or device: list its processes"},
    {"Esc", "back; in the list: clear the filter or, if there is none, select the first row"},
    {"< > , .", "sort by the column to the left or to the right"},
    {"s F6", "choose the column to sort by"},
    {"r R", "reverse the order"},
    {"f", "freeze the order: values change, but rows do not move"},
    {"/ F4", "filter: show only rows that contain a text"},
    {"\\ F3", "search for a row that contains a text; n, N: next, previous"},
    {"Space p", "pause: values stop changing, but counting continues"},
    {"+ - d", "lengthen or shorten the interval; d: type it in (0.1 to 60 s)"},
    {"b F7", "choose what rows are grouped by"},
    {"1 to 8", "group by the first, second, ... choice in the list that b opens"},
    {"t F5", "tree: show rows below their pod, with sums"},
    {"+ - Enter *", "in the tree: show or hide a pod's rows; *: the rows of all pods"},
    {"c F2", "choose columns and their order"},
    {"!", "all problems, each with a command for further diagnosis"},
    {"m", "messages so far"},
    {"K", "send a signal to the row's process, after a confirmation"},
    {"M", "mouse on or off. On: click a row to select it, again to open it, a header to sort. Off: select text"},
    {"w", "save the view to a file; to a .json file: every column of every row"},
    {"z", "colours on or off"},
    {"Ctrl-L", "redraw the screen"},
    {"? h F1", "this help"},
    {"q F10", "quit; q in a page like this one: back"},
};

constexpr KeyHelp replay_key_help[] = {
    {"Space p", "play or stop the recording"},
    {"+ -", "twice as fast, up to 64 times; half as fast"},
    {"[ ]", "one report back or forward"},
    {"{ }", "a minute back or forward"},
};

constexpr KeyHelp detail_key_help[] = {
    {"Left Right h", "plot another column"},
    {"< >", "scroll sideways"},
    {"Esc", "back to the list"},
};

void add_keys(std::vector<PageLine>& lines, std::span<const KeyHelp> keys)
{
    for (const auto& [key, what] : keys)
        lines.push_back({fmt::format("  {:<14}{}", key, what)});
}

std::string about_column(const TopColumn& column)
{
    return fmt::format("{}{}{}", column.about, column.needs.empty() ? "" : " Needs ", column.needs);
}

Page help_page(const Snapshot& snapshot)
{
    Page page{"Help", {}, {}};
    if (!snapshot.replayed.empty()) {
        page.lines.push_back({"Keys of a recording, used instead of the same keys listed below", Style::title});
        add_keys(page.lines, replay_key_help);
        page.lines.push_back({});
    }
    page.lines.push_back({"Keys", Style::title});
    add_keys(page.lines, key_help);
    page.lines.push_back({});
    page.lines.push_back({"Keys in an open row", Style::title});
    add_keys(page.lines, detail_key_help);
    page.lines.push_back({});
    page.lines.push_back({"Columns (*: from the GPU's own counters; -: unknown)", Style::title});
    for (const TopColumn& column : snapshot.columns)
        if (column.column.in_text)
            page.lines.push_back({fmt::format("  {:<14}{}", header_of(column), about_column(column))});
    return page;
}

Page messages_page(const ScreenState& state)
{
    Page page{"Messages", {}, {}};
    for (const Messages::Message& message : state.messages.all())
        page.lines.push_back(
            {message.times > 1 ? fmt::format("{} ({} times)", message.text, message.times) : message.text});
    if (page.lines.empty())
        page.lines.push_back({"No messages.", Style::dim});
    return page;
}

Page troubles_page(const Snapshot& snapshot)
{
    Page page{"Problems, worst first", {}, {}};
    for (const Trouble& trouble : snapshot.troubles.value_or(std::vector<Trouble>())) {
        page.lines.push_back({fmt::format("{:<2} {}", trouble.mark, trouble.who), style_of(trouble.severity)});
        page.lines.push_back({"   " + trouble.words});
        page.lines.push_back({fmt::format("   next: {}", trouble.next)});
        page.lines.push_back({fmt::format("   rule: {}", trouble.why), Style::dim});
    }
    if (page.lines.empty())
        page.lines.push_back({"No problem found (host side only).", Style::dim});
    return page;
}

Page chooser_page(const ScreenState& state, const Snapshot& snapshot)
{
    static constexpr std::string_view titles[] = {
        "Sort by: Enter chooses, Esc cancels",
        "Group by: Enter chooses, Esc cancels",
        "Columns: Space shows or hides, < > move, Enter closes",
    };
    const bool columns = state.view == View::choose_columns;
    Page page{std::string(titles[columns ? 2 : state.view == View::choose_by]), {}, {}};
    int at = 0;
    for (const Choice& choice : choices(state, snapshot)) {
        const std::string_view mark = columns ? (choice.chosen ? "[x]" : "[ ]") : choice.chosen ? " * " : "   ";
        page.lines.push_back({fmt::format("{} {:<14}{}", mark, choice.label, choice.about),
                              at++ == state.choice ? Style::selected : Style::plain});
    }
    return page;
}

std::string_view about_kind(std::string_view by)
{
    static constexpr KeyHelp kinds[] = {
        {"pid", "processes"},        {"thread", "threads"}, {"container", "containers"}, {"pod", "pods"},
        {"namespace", "namespaces"}, {"cgroup", "cgroups"}, {"kernel", "CUDA kernels"},  {"device", "GPUs"},
    };
    auto found = std::ranges::find(kinds, by, &KeyHelp::first);
    return found == std::end(kinds) ? std::string_view() : found->second;
}

} // namespace

bool is_chooser(View view)
{
    return view == View::choose_sort || view == View::choose_by || view == View::choose_columns;
}

std::vector<Choice> choices(const ScreenState& state, const Snapshot& snapshot)
{
    std::vector<Choice> result;
    if (state.view == View::choose_by) {
        for (const std::string& by : state.by_choices)
            result.push_back({by, by, std::string(about_kind(by)), by == snapshot.by});
        return result;
    }
    const bool sorts = state.view == View::choose_sort;
    const std::vector<size_t> shown = shown_columns(state, snapshot);
    const auto add = [&](size_t index, bool is_shown) {
        const TopColumn& column = snapshot.columns[index];
        const std::string key(column.column.key);
        result.push_back(
            {key, header_of(column), about_column(column), sorts ? key == state.arrangement.sort : is_shown});
    };
    for (size_t index : shown)
        add(index, true);
    for (size_t index = 0; index < snapshot.columns.size(); ++index)
        if (snapshot.columns[index].column.in_text && std::ranges::find(shown, index) == shown.end())
            add(index, false);
    return result;
}

Page page_of(const ScreenState& state, const Snapshot& snapshot, Size size)
{
    switch (state.view) {
    case View::help:
        return help_page(snapshot);
    case View::messages:
        return messages_page(state);
    case View::troubles:
        return troubles_page(snapshot);
    case View::detail:
        return detail_page(state, snapshot, size);
    default:
        return chooser_page(state, snapshot);
    }
}

int page_height(const Page& page, Size size)
{
    const int fixed = 2 + static_cast<int>(page.above.size());
    return std::max(size.lines - fixed, 1);
}

} // namespace gpusnoop
