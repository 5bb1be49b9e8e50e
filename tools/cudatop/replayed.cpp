// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/replayed.hpp"

#include "rows/column_choice.hpp"
#include "tools/cudatop/columns.hpp"
#include "tools/cudatop/rules.hpp"
#include "tools/cudatop/verdicts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace gpusnoop::cudatop {
namespace {

// What people read in place of what is for scripts: of which keys it is made, the first one that there is.
struct ForPeople {
    std::string_view header;
    std::vector<std::string_view> keys;
};
const ForPeople for_people[] = {
    {"KERNEL", {"kernel"}},   {"DEVICE", {"device", "gpu"}},
    {"TROUBLE", {"trouble"}}, {"GPU", {"gpu"}},
    {"ERROR", {"error"}},     {"NAMESPACE", {"namespace"}},
    {"POD", {"pod"}},         {"CONTAINER", {"container", "container_id"}},
    {"OWNER", {"owner"}},     {"POD/COMMAND", {"pod", "container", "command_line"}},
};

std::span<const std::string_view> keys_of(const Column& column)
{
    if (!column.key.empty() && column.key != column.header)
        return {&column.key, 1};
    const auto* found = std::ranges::find(for_people, column.header, &ForPeople::header);
    return found == std::end(for_people) ? std::span<const std::string_view>() : std::span(found->keys);
}

Cell cell_of(const Record::Value& value, Unit unit)
{
    if (const auto* text = std::get_if<std::string>(&value))
        return *text;
    const auto* number = std::get_if<double>(&value);
    if (!number)
        return {};
    if (unit == Unit::text)
        return fmt::format("{}", *number);
    const bool whole = unit != Unit::rate && unit != Unit::percent && *number >= 0 && *number < 0x1p63;
    return whole ? Cell(static_cast<uint64_t>(*number)) : Cell(*number);
}

// As the tool marked it: a share of calls was seen, or the process is older than the run.
Cell marked(Cell cell, const Record& record, const Column& column)
{
    const bool at_least = record.number("live_is_lower_bound").value_or(0) != 0;
    const auto* count = std::get_if<uint64_t>(&cell);
    if (count && at_least &&
        (column.key == "live_bytes" || (column.key == "memory_bytes" && record.text("memory_source") == "traced")))
        return AtLeast{*count};
    return column.of_calls && record.number("sampled_percent") ? estimate_of(cell) : cell;
}

Cell cell_of(const Record& record, const Column& column)
{
    // Rows by thread, which alone have that key, have the thread's name in the column (rows/report.hpp).
    const Record::Value* const thread = column.header == "COMM" ? record.value("thread_comm") : nullptr;
    if (thread)
        return cell_of(*thread, column.unit);
    for (const std::string_view key : keys_of(column))
        if (const Record::Value* value = record.value(key))
            return marked(cell_of(*value, column.unit), record, column);
    return {};
}

int severity_of(const Record& record)
{
    for (const Severity severity : {Severity::note, Severity::warning, Severity::alarm})
        if (record.text("severity") == severity_name(severity))
            return static_cast<int>(severity);
    return 0;
}

// What the row is, and no figure.
std::string id_of(const Record& record)
{
    constexpr std::string_view names[] = {"pid",       "process_start_ns", "tid",    "comm",   "container_id", "pod",
                                          "namespace", "cgroup",           "device", "kernel", "handle"};
    std::string id;
    for (const std::string_view name : names)
        if (const Record::Value* value = record.value(name)) {
            const Cell cell = cell_of(*value, Unit::text);
            const auto* text = std::get_if<std::string>(&cell);
            id += fmt::format("{}={}\n", name, text ? *text : "");
        }
    return id;
}

TopRow row_of(const Record& record, const std::vector<TopColumn>& columns)
{
    TopRow row{id_of(record), std::string(record.text("pod")), {}, severity_of(record)};
    for (const TopColumn& column : columns) {
        row.cells.push_back(cell_of(record, column.column));
        if (column.by_severity && row.severity)
            row.cells.back() =
                fmt::format("{} {}", severity_mark(static_cast<Severity>(row.severity)), record.text("trouble"));
    }
    return row;
}

GpuState gpu_of(const Record& record)
{
    const auto whole = [&](std::string_view key) -> std::optional<uint64_t> {
        const auto number = record.number(key);
        return number && *number >= 0 && *number < 0x1p63 ? std::optional(static_cast<uint64_t>(*number))
                                                          : std::nullopt;
    };
    return {.index = static_cast<unsigned>(whole("gpu_index").value_or(0)),
            .name = std::string(record.text("gpu_name")),
            .utilization = record.number("gpu_percent"),
            .power_watts = record.number("gpu_watts"),
            .memory_used = whole("gpu_used_bytes"),
            .memory_total = whole("gpu_total_bytes"),
            .users = std::string(record.text("gpu_users"))};
}

Trouble trouble_of(const Record& record)
{
    const int severity = severity_of(record);
    return {.severity = severity,
            .mark = std::string(severity_mark(static_cast<Severity>(severity))),
            .who = fmt::format("{} {:.0f}", record.text("comm"), record.number("pid").value_or(0)),
            .words = std::string(record.text("diagnosis")),
            .why = {},
            .next = std::string(record.text("next")),
            .rows = {}};
}

// Everything that its line has.
DetailPart all_of(const Record& record)
{
    DetailPart part{"What was recorded of it", {{"FIELD", "", Unit::text}, {"VALUE", "", Unit::text}}, {}, {}};
    for (const auto& [key, value] : record.all())
        part.rows.push_back({key, cell_of(value, Unit::text)});
    return part;
}

void add_facts(Snapshot& snapshot, const Record& total)
{
    const std::pair<const char*, std::string_view> facts[] = {{"processes", "traced_processes"}, {"lost", "lost"}};
    for (const auto& [label, key] : facts)
        if (const auto number = total.number(key))
            snapshot.facts.push_back({label, fmt::format("{:.0f}", *number), key == "lost" && *number != 0});
}

// Of processes these are in a column of their own.
bool is_owner(std::string_view header)
{
    constexpr std::string_view owners[] = {"NAMESPACE", "POD", "CONTAINER", "CGROUP"};
    return std::ranges::find(owners, header) != std::end(owners);
}

} // namespace

std::vector<TopColumn> replayed_columns(const Moments& moments, const std::vector<std::string>& chosen, bool screen)
{
    std::vector<TopColumn> all;
    const ColumnChoice choice(chosen);
    const auto recorded = [&](std::string_view key) { return moments.keys().contains(std::string(key)); };
    for (TopColumn& column : columns_of_any_view(screen)) {
        if (!column.trend && !std::ranges::any_of(keys_of(column.column), recorded))
            continue;
        column.shown =
            column.column.in_text &&
            choice.shows(column.column, column.shown && !(recorded("pid") && is_owner(column.column.header)));
        all.push_back(column);
    }
    return all;
}

Snapshot replayed(const Moment& moment, const std::vector<TopColumn>& columns, const std::string& open)
{
    Snapshot snapshot;
    snapshot.wall_ns = moment.wall_ns;
    snapshot.seconds = moment.seconds;
    snapshot.columns = columns;
    snapshot.troubles.emplace();
    for (const std::string& line : moment.rows) {
        const auto record = Record::parse(line);
        if (!record)
            continue;
        const std::string_view by = record->text("by");
        if (by == "gpu") {
            snapshot.gpus.push_back(gpu_of(*record));
        } else if (by == "diagnosis") {
            if (severity_of(*record)) // none where nothing was wrong
                snapshot.troubles->push_back(trouble_of(*record));
        } else if (by == "total") {
            add_facts(snapshot, *record);
        } else {
            snapshot.by = by;
            snapshot.rows.push_back(row_of(*record, columns));
            if (snapshot.rows.back().id == open && snapshot.detail.empty())
                snapshot.detail = {all_of(*record)};
        }
    }
    snapshot.detail_of = open;
    snapshot.totals = {total(snapshot.rows, snapshot.columns)};
    return snapshot;
}

std::vector<Row> replayed_verdicts(const Moment& moment)
{
    std::vector<Row> rows;
    for (const std::string& line : moment.rows) {
        const auto record = Record::parse(line);
        if (!record || record->text("by") != "diagnosis")
            continue;
        Row& row = rows.emplace_back();
        for (const Column& column : verdict_columns())
            row.push_back(column.key.empty()
                              ? Cell(std::string(severity_mark(static_cast<Severity>(severity_of(*record)))))
                              : cell_of(*record, column));
    }
    return rows;
}

} // namespace gpusnoop::cudatop
