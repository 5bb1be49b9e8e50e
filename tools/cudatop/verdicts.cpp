// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/verdicts.hpp"

#include "tools/cudatop/columns.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop::cudatop {

namespace {

bool is_about(const Verdict& verdict, const Key& key, const Group& group)
{
    return group.who.images.contains(verdict.process) && (!verdict.tid || !key.who.tid || verdict.tid == key.who.tid);
}

std::string who(const Verdict& verdict)
{
    return fmt::format("{} {}", verdict.name, verdict.process.pid);
}

std::string shown_words(const Verdict& verdict)
{
    return verdict.exited ? verdict.words + " (exited)" : verdict.words;
}

const Column columns_of_verdicts[] = {
    {"", "by", Unit::text, 0, false},       {"", "", Unit::text, 2, true, false}, // the severity mark
    {"PID", "pid", Unit::count, 7},         {"COMM", "comm", Unit::text, 15},
    {"", "owner", Unit::text, 0, false},    {"", "namespace", Unit::text, 0, false},
    {"", "pod", Unit::text, 0, false},      {"", "container", Unit::text, 0, false},
    {"", "tid", Unit::count, 0, false},     {"", "rule", Unit::text, 0, false},
    {"", "severity", Unit::text, 0, false}, {"", "next", Unit::text, 0, false},
    {"DIAGNOSIS", "diagnosis", Unit::text}};

Row row_of(const Verdict& verdict)
{
    return {std::string("diagnosis"),
            std::string(severity_mark(verdict.severity)),
            uint64_t{verdict.process.pid},
            verdict.name,
            text_if_any(verdict.owner),
            text_if_any(verdict.pod_namespace),
            text_if_any(verdict.pod),
            text_if_any(verdict.container),
            verdict.tid ? Cell(uint64_t{verdict.tid}) : Cell(),
            std::string(verdict.rule->name),
            std::string(severity_name(verdict.severity)),
            verdict.next,
            shown_words(verdict)};
}

void begin_table(Output& output, uint64_t wall_ns, double seconds)
{
    output.begin_table(columns_of_verdicts, wall_ns, static_cast<uint64_t>(std::llround(seconds * 1e9)));
}

} // namespace

const Verdict* worst(const Diagnosis& diagnosis, const Key& key, const Group& group)
{
    const auto& all = diagnosis.verdicts(); // worst first
    const auto found = std::ranges::find_if(all, [&](const Verdict& verdict) { return is_about(verdict, key, group); });
    return found == all.end() ? nullptr : &*found;
}

std::span<const Column> verdict_columns()
{
    return columns_of_verdicts;
}

// Key of the column whose history is shown for a verdict of this rule.
std::string_view column_of(const Rule& rule)
{
    static constexpr std::pair<std::string_view, std::string_view> columns[] = {
        {"hangs", "blocked_percent"},      {"driver", "ioctl_percent"},         {"stuck", "launches_per_second"},
        {"launch", "errors_per_second"},   {"wait", "errors_per_second"},       {"copy", "errors_per_second"},
        {"refused", "errors_per_second"},  {"memory", "errors_per_second"},     {"ioctl", "errors_per_second"},
        {"grows", "memory_bytes"},         {"copies", "copies_per_second"},     {"polls", "spinning_percent"},
        {"spins", "cpu_percent"},          {"captures", "captures_per_second"}, {"graph", "errors_per_second"},
        {"blocks", "launches_per_second"}, {"launches", "launches_per_second"}, {"shares", "launches_per_second"},
    };
    const auto* found = std::ranges::find(columns, rule.name, &std::pair<std::string_view, std::string_view>::first);
    return found == std::end(columns) ? std::string_view() : found->second;
}

void add_verdicts(Snapshot& snapshot, std::span<const Verdict* const> verdicts, const std::map<Key, Group>& rows)
{
    snapshot.troubles.emplace();
    for (const Verdict* verdict : verdicts) {
        Trouble trouble{.severity = static_cast<int>(verdict->severity),
                        .mark = std::string(severity_mark(verdict->severity)),
                        .who = who(*verdict),
                        .words = shown_words(*verdict),
                        .why = std::string(verdict->rule->about),
                        .next = verdict->next,
                        .column = std::string(column_of(*verdict->rule)),
                        .rows = {}};
        for (const auto& [key, group] : rows)
            if (is_about(*verdict, key, group))
                trouble.rows.push_back(row_id(key));
        snapshot.troubles->push_back(std::move(trouble));
    }
}

void print_verdicts(Output& output, std::span<const Verdict* const> verdicts, const Snapshot& snapshot)
{
    std::vector<Row> rows;
    std::ranges::transform(verdicts, std::back_inserter(rows), [](const Verdict* verdict) { return row_of(*verdict); });
    print_verdicts(output, rows, snapshot);
}

void print_verdicts(Output& output, std::span<const Row> rows, const Snapshot& snapshot)
{
    if (rows.empty())
        return;
    begin_table(output, snapshot.wall_ns, snapshot.seconds);
    for (const Row& row : rows)
        output.row(columns_of_verdicts, row, {});
}

void print_why(Output& output, std::span<const WhyLine> lines, const Snapshot& snapshot, const Watched& watched)
{
    const auto& [processes, exited, seconds, dropped] = watched;
    for (Output* const to : {output.for_people(), output.for_programs()}) {
        if (!to)
            continue;
        begin_table(*to, snapshot.wall_ns, seconds);
        for (const WhyLine& line : lines) {
            std::vector<std::string> below = line.frames;
            if (to == output.for_people()) { // only for people; JSON has keys for owner and command
                for (std::string& frame : below)
                    frame.insert(0, "  ");
                if (!line.verdict.owner.empty())
                    below.insert(below.begin(), "owner: " + line.verdict.owner);
                below.push_back("next: " + line.verdict.next);
            }
            to->row(columns_of_verdicts, row_of(line.verdict), {"details", below});
        }
        const auto add_message = [to](std::string severity, std::string words) {
            to->row(columns_of_verdicts,
                    {std::string("diagnosis"), std::string(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell(),
                     Cell(), std::move(severity), Cell(), std::move(words)},
                    {});
        };
        if (lines.empty())
            add_message("none", fmt::format("no problem found in {:.1f} s (host side only); {} process{} inspected{}",
                                            seconds, processes, processes == 1 ? "" : "es",
                                            exited ? fmt::format(", {} of them exited", exited) : ""));
        if (dropped)
            add_message("note", fmt::format("{} more verdicts on processes that exited are not shown", dropped));
    }
}

namespace {

constexpr size_t lines_max = 1000;

} // namespace

void ExitedVerdicts::add(std::span<const Verdict* const> verdicts, const Frames& frames)
{
    for (const Verdict* verdict : verdicts) {
        if (verdict->rule->of_group)
            loops_.insert(verdict->group);
        if (verdict->exited)
            lines_.push_back({*verdict, frames(*verdict)});
    }
    fold();
    for (; lines_.size() > lines_max; dropped_++)
        lines_.pop_front();
}

// For each restart loop, keeps only the last line of each rule.
void ExitedVerdicts::fold()
{
    std::set<std::pair<uint64_t, const Rule*>> seen;
    std::deque<WhyLine> kept;
    for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) {
        const Verdict& of = line->verdict;
        if (!loops_.contains(of.group) || seen.emplace(of.group, of.rule).second)
            kept.push_front(std::move(*line));
    }
    lines_ = std::move(kept);
}

std::vector<WhyLine> ExitedVerdicts::with(std::span<const Verdict* const> of_last_interval, const Frames& frames)
{
    for (const Verdict* verdict : of_last_interval) {
        if (verdict->rule->of_group)
            loops_.insert(verdict->group);
        lines_.push_back({*verdict, frames(*verdict)});
    }
    fold();
    std::vector<WhyLine> all(std::make_move_iterator(lines_.begin()), std::make_move_iterator(lines_.end()));
    lines_.clear();
    std::ranges::stable_sort(all, comes_before, &WhyLine::verdict);
    return all;
}

} // namespace gpusnoop::cudatop
