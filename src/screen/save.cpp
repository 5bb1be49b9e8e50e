// SPDX-License-Identifier: Apache-2.0
#include "screen/save.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/output_path.hpp"
#include "output/json_fields.hpp"
#include "screen/draw.hpp"
#include "screen/list_view.hpp"
#include "screen/page.hpp"

#include <algorithm>
#include <cerrno>

namespace gpusnoop {

namespace {

constexpr int max_saved_columns = 1000, max_saved_lines = 5000; // 80 MB of cells; larger screens are truncated

Size size_for_all(const ScreenState& state, const Snapshot& snapshot)
{
    Size size = state.size;
    if (state.view != View::list) {
        const Page page = page_of(state, snapshot, size);
        for (const PageLine& line : page.lines)
            size.columns = std::max(size.columns, columns_of(line.text));
        size.lines = std::max(size.lines, static_cast<int>(page.lines.size() + page.above.size()) + 2);
    } else {
        int columns = 0;
        for (const ColumnWidth& width : view_list(state, snapshot, {max_saved_columns, max_saved_lines}).widths)
            columns += std::max(width.least, width.wanted) + 1;
        size.columns = std::max(size.columns, columns);
        const auto header = static_cast<int>(snapshot.gpus.size() + snapshot.facts.size()) + 4;
        size.lines = 3 * header + static_cast<int>(list_lines(state, snapshot).size());
    }
    return {std::min(size.columns, max_saved_columns), std::min(size.lines, max_saved_lines)};
}

} // namespace

std::string screen_text(const ScreenState& state, const Snapshot& snapshot)
{
    const Size size = size_for_all(state, snapshot);
    ScreenState whole = state;
    whole.first_row = whole.first_column = whole.page_top = whole.page_left = 0;
    whole.selected.clear();
    Canvas canvas(size.columns, size.lines);
    draw(canvas, whole, snapshot);
    std::string text;
    for (int y = 0; y + 1 < size.lines; ++y) // leaves out the last line, which shows key hints
        text += canvas.line_text(y) + '\n';
    text.erase(text.find_last_not_of('\n') + 1);
    return text + '\n';
}

std::string screen_json(const ScreenState& state, const Snapshot& snapshot)
{
    std::vector<Column> columns;
    for (const TopColumn& column : snapshot.columns)
        columns.push_back(column.column);
    std::string text;
    JsonFields fields(text);
    for (const TopRow* row : arrange(snapshot, state.arrangement)) {
        if (row->cells.size() != columns.size())
            continue;
        fields.begin("row");
        fields.time("time", snapshot.wall_ns);
        fields.integer("interval_ns", static_cast<uint64_t>(std::max(snapshot.seconds, 0.0) * 1e9));
        fields.cells(columns, row->cells);
        text += "}\n";
    }
    return text;
}

void save_screen(const std::string& name, const ScreenState& state, const Snapshot& snapshot)
{
    const std::string text = name.ends_with(".json") ? screen_json(state, snapshot) : screen_text(state, snapshot);
    const Fd file = OutputPath(name, "screen", "").create(0600);
    if (!write_all(file.get(), text))
        throw Error("cannot write the file: " + errno_text(errno));
}

} // namespace gpusnoop
