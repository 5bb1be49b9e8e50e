// SPDX-License-Identifier: Apache-2.0
#include "tools/cudadiff/side.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "tools/cudadiff/event_row.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

namespace gpusnoop::cudadiff {
namespace {

constexpr size_t series_max = 20'000, sums_max = 2'000'000, texts_max = 16, sizes_max = 4096;
constexpr size_t parts_wanted = 12; // blocks per tool; the Mann-Whitney test needs about ten, and some may be empty
constexpr double max_figure = 2e19; // limit for plausible values, which have at most 64 bits

void note(std::set<std::string>& texts, std::string_view text)
{
    if (!text.empty() && texts.size() < texts_max)
        texts.emplace(text);
}

std::string group_of(Group by, const Record& record)
{
    std::string name(by == Group::process ? record.text("comm") : record.text("pod"));
    if (by == Group::pod && !name.empty())
        name = fmt::format("{}/{}", record.text("namespace"), name);
    return name.empty() ? "-" : name;
}

bool is_possible(double figure)
{
    return figure >= 0 && figure <= max_figure;
}

// True if the source reads rows whose JSON key "by" has this value. Tables of cudatop contain several kinds of rows,
// distinguished by this key.
bool matches(const Source& source, std::string_view by)
{
    return source.rows.empty() ? is_main_row(by) : by == source.rows;
}

} // namespace

void Sum::add(const Sum& other)
{
    sum += other.sum;
    for (const auto& [size, weight] : other.sizes)
        if (sizes.size() < sizes_max || sizes.contains(size))
            sizes[size] += weight;
}

const Sum* Block::find(const Series& one) const
{
    const auto found = sums.find(one);
    return found == sums.end() ? nullptr : &found->second;
}

void Side::read(std::span<const std::string> files)
{
    facts_.unread = read_recording(
        files, [this](const RecordedRun& of, const Record& record, std::string_view) { add_record(of, record); });
    for (auto& [number, run] : runs_)
        drop_lossy_lines(run);
    facts_.runs = runs_.size();
    for (const auto& [number, run] : runs_)
        if (!run.intervals.empty())
            facts_.seconds += (run.intervals.rbegin()->second.end_ns - run.intervals.begin()->second.end_ns +
                               run.intervals.begin()->second.length_ns) /
                              second_ns;
    if (std::ranges::any_of(runs_, [](const auto& item) { return !item.second.intervals.empty(); }))
        return;
    throw Error(fmt::format("'{}' has nothing to compare{}", printable(files.front()),
                            facts_.lossy     ? ": the recording lost lines of -e, so its totals are unknown"
                            : facts_.events  ? ": it has only lines of -e, which are not compared for this tool"
                            : facts_.no_tool ? ": its first line, which names the tool, is missing"
                                             : ""),
                "record tables with an interval, for example: cudalaunch --record FILE 1");
}

void Side::add_record(const RecordedRun& of, const Record& record)
{
    const uint64_t lost = lost_in(record);
    facts_.lost += lost;
    if (const auto run = runs_.find(of.number); lost && run != runs_.end())
        run->second.lost += lost;
    const bool is_event = record.type() == "event";
    const auto row = is_event ? row_of_event(of.tool, record) : std::nullopt;
    facts_.events += is_event && !row;
    if (record.type() != "row" && !row)
        return;
    if (of.tool.empty()) {
        facts_.no_tool++;
        return;
    }
    note(facts_.hosts, of.host);
    note(facts_.versions, of.version);
    note(facts_.commands, of.command_line);
    note(facts_.tools, of.tool);
    Run& run = runs_[of.number];
    run.tool = of.tool;
    if (row)
        add_event(run, *row, record.number("time_ns").value_or(0));
    else
        add_table_row(run, record);
}

// Adds the line to an interval of one second. The sums over the lines in an interval equal the values that the tool's
// table for that second would have.
void Side::add_event(Run& run, const Record& row, double time_ns)
{
    if (time_ns < 1 || time_ns > 1e19)
        return;
    run.lines++;
    facts_.lines++;
    const double end_ns = std::ceil(time_ns / second_ns) * second_ns;
    add_row(run, row, end_ns, second_ns);
}

// Drops all lines of a run that lost lines. Some counts of such a run are wrong, and it is not known which.
void Side::drop_lossy_lines(Run& run)
{
    if (!run.lines || !run.lost)
        return;
    facts_.lossy += run.lines;
    facts_.lines -= run.lines;
    run.intervals.clear();
}

void Side::add_table_row(Run& run, const Record& record)
{
    const auto length = record.number("interval_ns");
    auto end = record.number("monotonic_ns"); // preferred, because the monotonic clock cannot be set
    if (!end)
        end = wall_ns_of(record.text("time"));
    if (!length || !end || *length < 1 || *length > 1e18 || *end < *length || *end > 1e19)
        return;
    add_row(run, record, *end, *length);
}

void Side::add_row(Run& run, const Record& record, double end_ns, double length_ns)
{
    facts_.unknown_graphs += record.number("graph_launches_unknown").value_or(0);
    facts_.estimated += record.number("sampled_percent").value_or(100) < 100;
    Interval& interval = run.intervals[std::llround(end_ns / 1000)];
    interval.end_ns = end_ns;
    interval.length_ns = length_ns;
    const size_t before = interval.sums.size();
    add(interval, record, run.tool, "");
    if (by_ != Group::whole)
        add(interval, record, run.tool, group_of(by_, record));
    sums_ += interval.sums.size() - before;
    if (sums_ > sums_max)
        merge_intervals();
}

void Side::add(Interval& interval, const Record& record, std::string_view tool, const std::string& group)
{
    const std::string_view by = record.text("by");
    for (size_t number = 0; number < measures().size(); number++) {
        const Measure& measure = measures()[number];
        for (size_t source = 0; source < std::size(measure.sources); source++) {
            const Source& from = measure.sources[source];
            if (from.tool != tool || !matches(from, by))
                continue;
            const auto value = record.number(from.key);
            const std::string_view name = measure.split.empty() ? "" : record.text(measure.split);
            if (!value || !is_possible(*value) || (!measure.split.empty() && name.empty()))
                continue;
            Series series{group, number, source, std::string(name)};
            if (series_.size() >= series_max && !series_.contains(series)) {
                facts_.dropped_rows++;
                continue;
            }
            Sum one{*value, {}};
            if (measure.kind == MeasureKind::size)
                one = {0, {{*value, std::clamp(record.number(from.weight).value_or(0), 0.0, max_figure)}}};
            else if (measure.kind == MeasureKind::level)
                one.sum *= interval.length_ns;
            series_.insert(series);
            interval.sums[std::move(series)].add(one);
        }
    }
}

// Merges neighboring intervals in pairs, to bound the memory that a recording of many hours needs.
void Side::merge_intervals()
{
    sums_ = 0;
    for (auto& [number, run] : runs_) {
        std::map<int64_t, Interval> fewer;
        while (!run.intervals.empty()) {
            auto first = run.intervals.extract(run.intervals.begin());
            if (!run.intervals.empty()) {
                auto second = run.intervals.extract(run.intervals.begin());
                Interval& both = second.mapped();
                for (const auto& [series, sum] : first.mapped().sums)
                    both.sums[series].add(sum);
                both.length_ns += first.mapped().length_ns;
                first = std::move(second);
            }
            sums_ += first.mapped().sums.size();
            fewer.insert(fewer.end(), std::move(first));
        }
        run.intervals = std::move(fewer);
    }
}

std::vector<Block> Side::blocks(std::string_view tool, const std::string& group) const
{
    const auto runs =
        static_cast<size_t>(std::ranges::count_if(runs_, [&](const auto& item) { return item.second.tool == tool; }));
    std::vector<Block> all;
    for (const auto& [number, run] : runs_)
        if (run.tool == tool)
            std::ranges::move(cut(run.intervals, group, (parts_wanted + runs - 1) / runs), std::back_inserter(all));
    return all;
}

std::vector<Block> Side::cut(const std::map<int64_t, Interval>& intervals, const std::string& group, size_t parts)
{
    auto is_active = [&](const Interval& interval) {
        return std::ranges::any_of(interval.sums, [&](const auto& item) {
            return item.first.group == group && item.second.sum > 0 &&
                   measures()[item.first.measure].kind == MeasureKind::count;
        });
    };
    std::vector<const Interval*> all;
    for (const auto& [end, interval] : intervals)
        if (is_active(interval) || !all.empty())
            all.push_back(&interval);
    while (!all.empty() && !is_active(*all.back()))
        all.pop_back();
    // Drop the first and the last interval, because calls were made in only a part of them.
    constexpr size_t min_intervals = 6;
    if (all.size() >= min_intervals) {
        all.erase(all.begin());
        all.pop_back();
    }
    std::vector<Block> blocks;
    if (all.empty())
        return blocks;
    // Intervals without rows are missing from the recording. Their time counts, too, so a block begins at the end of
    // the previous one.
    double begin = all.front()->end_ns - all.front()->length_ns;
    parts = std::min(parts, all.size());
    for (size_t part = 0; part < parts; part++) {
        const size_t first = all.size() * part / parts, last = all.size() * (part + 1) / parts;
        Block block;
        for (size_t i = first; i < last; i++)
            for (const auto& [series, sum] : all[i]->sums)
                if (series.group == group)
                    block.sums[series].add(sum);
        block.seconds = (all[last - 1]->end_ns - begin) / second_ns;
        begin = all[last - 1]->end_ns;
        if (block.seconds > 0)
            blocks.push_back(std::move(block));
    }
    return blocks;
}

} // namespace gpusnoop::cudadiff
