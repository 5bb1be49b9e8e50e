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
constexpr size_t parts_wanted = 12; // ten are advised for the test of Mann and Whitney, and some may be empty
constexpr double max_figure = 2e19; // no figure has more than 64 bits

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

// cudatop has rows of several kinds in one table.
bool is_of(const Source& source, std::string_view by)
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
    facts_.unread =
        read_recording(files, [this](const RunOf& of, const Record& record, std::string_view) { take(of, record); });
    for (auto& [number, run] : runs_)
        leave_out_lossy_lines(run);
    facts_.runs = runs_.size();
    for (const auto& [number, run] : runs_)
        if (!run.intervals.empty())
            facts_.seconds += (run.intervals.rbegin()->second.end_ns - run.intervals.begin()->second.end_ns +
                               run.intervals.begin()->second.length_ns) /
                              second_ns;
    if (std::ranges::any_of(runs_, [](const auto& item) { return !item.second.intervals.empty(); }))
        return;
    throw Error(fmt::format("'{}' has nothing to compare{}", printable(files.front()),
                            facts_.lossy     ? ": of its lines of -e some were lost, and nobody knows how many of what"
                            : facts_.events  ? ", only lines of -e of a tool whose lines are not compared"
                            : facts_.no_tool ? ": the lines that say which tool they are of are missing"
                                             : ""),
                "record tables with an interval, as: cudalaunch --record FILE 1");
}

void Side::take(const RunOf& of, const Record& record)
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
        take_event(run, *row, record.number("time_ns").value_or(0));
    else
        take_row(run, record);
}

// Of each second, all lines together are what a table of it would have.
void Side::take_event(Run& run, const Record& row, double time_ns)
{
    if (time_ns < 1 || time_ns > 1e19)
        return;
    run.lines++;
    facts_.lines++;
    const double end_ns = std::ceil(time_ns / second_ns) * second_ns;
    add_row(run, row, end_ns, second_ns);
}

// A count of which some is missing is none, and which second it is missing from, no line says.
void Side::leave_out_lossy_lines(Run& run)
{
    if (!run.lines || !run.lost)
        return;
    facts_.lossy += run.lines;
    facts_.lines -= run.lines;
    run.intervals.clear();
}

void Side::take_row(Run& run, const Record& record)
{
    const auto length = record.number("interval_ns");
    auto end = record.number("monotonic_ns"); // which nobody sets
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
        make_room();
}

void Side::add(Interval& interval, const Record& record, std::string_view tool, const std::string& group)
{
    const std::string_view by = record.text("by");
    for (size_t number = 0; number < measures().size(); number++) {
        const Measure& measure = measures()[number];
        for (size_t source = 0; source < std::size(measure.sources); source++) {
            const Source& from = measure.sources[source];
            if (from.tool != tool || !is_of(from, by))
                continue;
            const auto value = record.number(from.key);
            const std::string_view name = measure.split.empty() ? "" : record.text(measure.split);
            if (!value || !is_possible(*value) || (!measure.split.empty() && name.empty()))
                continue;
            Series series{group, number, source, std::string(name)};
            if (series_.size() >= series_max && !series_.contains(series)) {
                facts_.beyond++;
                continue;
            }
            Sum one{*value, {}};
            if (measure.of == Of::size)
                one = {0, {{*value, std::clamp(record.number(from.weight).value_or(0), 0.0, max_figure)}}};
            else if (measure.of == Of::level)
                one.sum *= interval.length_ns;
            series_.insert(series);
            interval.sums[std::move(series)].add(one);
        }
    }
}

// Of a recording of many hours, two intervals become one, so that it takes no more memory than there is.
void Side::make_room()
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
    // Where it was at work.
    auto is_at_work = [&](const Interval& interval) {
        return std::ranges::any_of(interval.sums, [&](const auto& item) {
            return item.first.group == group && item.second.sum > 0 && measures()[item.first.measure].of == Of::count;
        });
    };
    std::vector<const Interval*> all;
    for (const auto& [end, interval] : intervals)
        if (is_at_work(interval) || !all.empty())
            all.push_back(&interval);
    while (!all.empty() && !is_at_work(*all.back()))
        all.pop_back();
    // It began, and ended, within the first and the last one.
    constexpr size_t enough = 6;
    if (all.size() >= enough) {
        all.erase(all.begin());
        all.pop_back();
    }
    std::vector<Block> blocks;
    if (all.empty())
        return blocks;
    // An interval without any rows is none that was recorded: its time is there nevertheless.
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
