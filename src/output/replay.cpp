// SPDX-License-Identifier: Apache-2.0
#include "output/replay.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "output/merged_rows.hpp"
#include "output/recording.hpp"
#include "output/shown_cells.hpp"
#include "rows/field.hpp"
#include "rows/output.hpp"
#include "rows/table.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace gpusnoop {
namespace {

struct Line {
    double order = 0;
    Row cells;
    Record::Texts below;
};

class Replay {
public:
    Replay(std::string_view tool, const ReplayView& view, const Options& options)
        : tool_(tool), view_(view), options_(options), moments_(std::span(&options.replay, 1), tool),
          output_(make_text_output(options.timestamps))
    {
        if (merges() && !view.adds_up)
            throw UsageError(
                fmt::format("rows of {} cannot be merged: use --replay without --by and without an interval", tool));
        if (view.by)
            keys_ = row_keys_named(*view.by);
    }

    void run()
    {
        for (const std::string& text : moments_.missing())
            warn(text);
        const std::vector<Moment>& all = moments_.all();
        uint64_t reports = 0;
        for (size_t from = moments_.at(options_.replay_at); from < all.size();) {
            size_t to = from + 1;
            while (options_.interval && to < all.size() && is_in_interval(all[to], all[from]))
                to++;
            // Tables with the same time belong to the same report, which is counted once.
            if (!options_.count || reports < options_.count || (from && all[from].wall_ns == all[from - 1].wall_ns))
                show(std::span(all).subspan(from, to - from));
            else
                break;
            reports += !(to < all.size() && all[to].wall_ns == all[to - 1].wall_ns);
            from = to;
        }
        warn_about_missing();
        output_->flush();
    }

private:
    bool merges() const { return view_.by || options_.interval; }

    static double begin_of(const Moment& moment) { return static_cast<double>(moment.wall_ns) / 1e9 - moment.seconds; }

    // True if the middle of the report is in the interval that begins with the report `first`.
    bool is_in_interval(const Moment& moment, const Moment& first) const
    {
        const double length = std::chrono::duration<double>(*options_.interval).count();
        return moment.run == first.run && begin_of(moment) + moment.seconds / 2 < begin_of(first) + length;
    }

    void show(std::span<const Moment> moments)
    {
        const Moment* widest = nullptr;
        for (const Moment& moment : moments)
            if (moment.table && (!widest || table_of(moment).size() > table_of(*widest).size()))
                widest = &moment;
        if (!widest)
            throw Error(fmt::format("'{}' has no table layouts: it was recorded by an older version or another program",
                                    printable(options_.replay)));
        if (options_.interval && moments.size() == 1 && &moments.front() != &moments_.all().back() &&
            moments.front().seconds > std::chrono::duration<double>(*options_.interval).count() * 1.5)
            throw UsageError(fmt::format("the interval is too short: the reports of the recording are {:.3g} s long",
                                         moments.front().seconds));
        const RecordedColumns recorded(table_of(*widest));
        std::vector<Record> rows = rows_of(moments, recorded.all());
        const Moment& last = moments.back();
        ShownTable table{.tool = tool_,
                         .seconds = moments.size() == 1
                                        ? last.seconds
                                        : static_cast<double>(last.wall_ns) / 1e9 - begin_of(moments.front()),
                         .names = view_.names};
        table.nvml = std::ranges::any_of(rows, [](const Record& row) { return row.number("nvml_bytes").has_value(); });
        table.has_graph_kernels =
            std::ranges::find(recorded.all(), "GRAPHKERN", &Column::header) != recorded.all().end();
        const std::vector<Column> columns = columns_for(recorded.all());
        table.threads = std::ranges::find(columns, "TID", &Column::header) != columns.end();
        print(columns, std::move(rows), table, last.wall_ns);
    }

    const Record::Texts& table_of(const Moment& moment) const { return moments_.table(*moment.table); }

    std::vector<Record> rows_of(std::span<const Moment> moments, std::span<const Column> columns)
    {
        std::vector<Record> rows;
        const std::vector<const RowKey*> recorded = row_keys_shown(columns);
        MergedRows merged(tool_, view_.by ? keys_ : recorded, recorded, !view_.by);
        for (size_t number = 0; number < moments.size(); number++)
            for (const std::string& line : moments[number].rows)
                if (auto row = Record::parse(line)) {
                    if (merges())
                        merged.add(*row, number);
                    else
                        rows.push_back(std::move(*row));
                }
        if (!merges())
            return rows;
        unmergeable_keys_.insert(merged.unmergeable().begin(), merged.unmergeable().end());
        return merged.rows();
    }

    // Columns to show. Without --by, these are the recorded columns. With --by, they are the columns of the keys given
    // to --by, and the recorded columns that belong to no key.
    std::vector<Column> columns_for(std::span<const Column> recorded) const
    {
        std::vector<Column> all;
        if (view_.by)
            for (const RowKey* key : keys_)
                for (const std::string_view header : key->headers)
                    if (std::ranges::find(all, header, &Column::header) == all.end())
                        add_key_column(all, recorded, header, header == key->headers.front());
        for (const Column& column : recorded)
            if (!view_.by || !row_key_of(column))
                all.push_back(column);
        if (view_.by) // kernel names are in the last column, as in live tables
            std::stable_partition(all.begin(), all.end(), [](const Column& c) { return c.header != "KERNEL"; });
        const ColumnChoice choice(options_.columns);
        for (Column& column : all)
            column.in_text = choice.shows(column, true);
        return all;
    }

    static void add_key_column(std::vector<Column>& all, std::span<const Column> recorded, std::string_view header,
                               bool is_first)
    {
        static constexpr Column usual[] = {{"PID", "pid", Unit::count, 7},    {"COMM", "comm", Unit::text, 15},
                                           {"POD", "", Unit::text, 40},       {"NAMESPACE", "", Unit::text, 24},
                                           {"CONTAINER", "", Unit::text, 40}, {"CGROUP", "", Unit::text, 60}};
        const auto found = std::ranges::find(recorded, header, &Column::header);
        const auto* const known = std::ranges::find(usual, header, &Column::header);
        if (found != recorded.end())
            all.push_back(*found);
        else if (known != std::end(usual))
            all.push_back(*known);
        else if (is_first)
            throw Error(fmt::format("the recording cannot be grouped by {}: its rows do not have that column", header));
    }

    void print(const std::vector<Column>& columns, std::vector<Record> rows, const ShownTable& table, uint64_t wall_ns)
    {
        std::vector<Line> lines;
        for (const Record& row : rows)
            lines.push_back(line_of(columns, row, table));
        if (merges() || !view_.sort.empty())
            std::ranges::stable_sort(lines, std::greater<>(), &Line::order);
        output_->begin_table(columns, wall_ns, static_cast<uint64_t>(std::llround(table.seconds * 1e9)));
        for (size_t number = 0; number < lines.size(); number++) {
            Output* const place = output_->place_of_row(number, options_.rows);
            if (!place)
                break;
            place->row(columns, lines[number].cells, lines[number].below);
        }
        output_->end_report([] { return std::string("nothing was recorded"); }, wall_ns);
        for (size_t i = 0; i < columns.size(); i++)
            if (columns[i].in_text)
                note_empty(columns[i], i, lines);
    }

    // Records why a column has empty cells, for warn_about_missing().
    void note_empty(const Column& column, size_t place, const std::vector<Line>& lines)
    {
        const bool is_empty = std::ranges::any_of(
            lines, [&](const Line& line) { return std::holds_alternative<std::monostate>(line.cells[place]); });
        if (is_empty && unmergeable_keys_.contains(std::string(column.key)))
            unmergeable_.insert(std::string(column.header));
        if (!can_be_shown(column, tool_))
            unrecorded_.insert(std::string(column.header));
    }

    Line line_of(const std::vector<Column>& columns, const Record& row, const ShownTable& table)
    {
        Line line;
        const std::string& sort = view_.sort.empty() ? view_.usual_sort : view_.sort;
        line.order = row.number(sort).value_or(-std::numeric_limits<double>::infinity());
        for (const Column& column : columns) {
            line.cells.push_back(shown_cell(row, column, table));
            if (column.is_called(sort))
                line.order = sort_value(line.cells.back());
        }
        // JSON rows contain their lists of texts in reverse of the order in which tables print them (ExtraLines::then)
        for (auto value = row.all().rbegin(); value != row.all().rend(); ++value)
            if (const auto* texts = std::get_if<Record::Texts>(&value->second))
                line.below.insert(line.below.end(), texts->begin(), texts->end());
        return line;
    }

    void warn_about_missing() const
    {
        if (!unmergeable_.empty())
            warn(fmt::format("these columns cannot be merged over several rows and are shown as '-': {}",
                             joined(unmergeable_, ", ")));
        if (!unrecorded_.empty())
            warn(
                fmt::format("these columns are not in recordings and are shown as '-': {}", joined(unrecorded_, ", ")));
    }

    std::string_view tool_;
    const ReplayView& view_;
    const Options& options_;
    Moments moments_;
    std::unique_ptr<Output> output_;
    std::vector<const RowKey*> keys_;
    std::set<std::string> unmergeable_keys_;         // JSON keys
    std::set<std::string> unmergeable_, unrecorded_; // column headers
};

} // namespace

void replay_tables(std::string_view tool, const ReplayView& view, const Options& options)
{
    Replay(tool, view, options).run();
}

} // namespace gpusnoop
