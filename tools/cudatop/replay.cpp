// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/replay.hpp"

#include "base/clock.hpp"
#include "base/ending_signals.hpp"
#include "base/error.hpp"
#include "base/loop.hpp"
#include "output/recording.hpp"
#include "rows/field.hpp"
#include "rows/output.hpp"
#include "run/command_line.hpp"
#include "screen/screen.hpp"
#include "tools/cudatop/batch.hpp"
#include "tools/cudatop/columns.hpp"
#include "tools/cudatop/live.hpp"
#include "tools/cudatop/rules.hpp"
#include "tools/cudatop/verdicts.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop::cudatop {

namespace {

// A column without a JSON key of its own. It shows the value of the first of `keys` that the recorded row has.
struct ShownHeader {
    std::string_view header;
    std::vector<std::string_view> keys;
};
const ShownHeader shown_headers[] = {
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
    const auto* found = std::ranges::find(shown_headers, column.header, &ShownHeader::header);
    return found == std::end(shown_headers) ? std::span<const std::string_view>() : std::span(found->keys);
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

// Marks the value as the recorded run did: with "~" if it is an estimate from sampled calls, with ">=" if it is a lower
// bound because the process started before that run.
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
    // Only rows that are grouped by thread have this key. They show the thread's name in this column (rows/report.hpp).
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

// Returns an id of the row, made from the fields that identify the row.
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

// Returns all fields of the row's JSON line, as a section of a page.
DetailPart all_of(const Record& record)
{
    DetailPart part{"Recorded fields", {{"FIELD", "", Unit::text}, {"VALUE", "", Unit::text}}, {}, {}};
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

// True for columns that are hidden if rows are processes, because POD/COMMAND shows the owner.
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
            if (severity_of(*record)) // the severity is 0 in a --why line that reports no problem
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

namespace {

using namespace std::chrono_literals;

constexpr int max_doublings = 6; // at most 64 times real time
constexpr uint64_t second_ns = 1'000'000'000, minute_ns = 60 * second_ns;
constexpr uint64_t max_pause_ns = 10 * second_ns; // longer gaps between two reports are skipped

// Plays a recording on the screen, in real time or faster.
class Player {
public:
    Player(const Moments& moments, std::vector<TopColumn> columns, size_t at, const Screen::Options& options,
           EndingSignals& signals)
        : moments_(moments), columns_(std::move(columns)), at_(at), loop_(signals),
          screen_(options, [this](const Action& action) { act(action); })
    {}

    Preferences run()
    {
        for (const int descriptor : screen_.descriptors())
            loop_.watch(descriptor, [this] { screen_.ready(); });
        loop_.every(50ms, [this] { tick(); });
        screen_.started();
        for (std::string& text : moments_.missing())
            screen_.message(std::move(text));
        play(true);
        loop_.run();
        return screen_.chosen();
    }

private:
    const std::vector<Moment>& all() const { return moments_.all(); }
    bool is_last() const { return at_ + 1 >= all().size(); }

    void act(const Action& action)
    {
        switch (action.kind) {
        case Action::quit:
            return loop_.stop();
        case Action::open:
            open_ = action.text;
            return show(false);
        case Action::refresh:
            return show(false);
        case Action::play:
            return play(!playing_);
        case Action::speed:
            doublings_ = std::clamp(doublings_ + action.number, 0, max_doublings);
            return play(playing_);
        case Action::step:
            return go(static_cast<int64_t>(at_) + action.number);
        case Action::leap:
            return leap(action.number);
        default:
            return;
        }
    }

    // Starts or stops playing at the report that is shown.
    void play(bool on)
    {
        playing_ = on && !is_last();
        since_ns_ = clock_ns(CLOCK_MONOTONIC);
        from_ns_ = all()[at_].wall_ns;
        show(false);
    }

    void tick()
    {
        if (!playing_)
            return;
        const uint64_t now = from_ns_ + ((clock_ns(CLOCK_MONOTONIC) - since_ns_) << doublings_);
        const size_t before = at_;
        while (!is_last() && all()[at_ + 1].wall_ns <= now)
            at_++;
        if (!is_last() && at_ == before && all()[at_ + 1].wall_ns - all()[at_].wall_ns > max_pause_ns) {
            at_++;
            return play(true);
        }
        if (is_last())
            playing_ = false;
        if (at_ != before || !playing_)
            show(false);
    }

    void go(int64_t to)
    {
        const auto before = static_cast<int64_t>(at_);
        at_ = static_cast<size_t>(std::clamp<int64_t>(to, 0, static_cast<int64_t>(all().size()) - 1));
        playing_ = false;
        show(static_cast<int64_t>(at_) < before);
    }

    void leap(int minutes)
    {
        const uint64_t now = all()[at_].wall_ns, far = minute_ns * static_cast<uint64_t>(std::abs(minutes));
        go(static_cast<int64_t>(moments_.at(minutes > 0 ? now + far : now - std::min(now, far))));
    }

    void show(bool leaps)
    {
        Snapshot snapshot = replayed(all()[at_], columns_, open_);
        const RecordedRun& run = moments_.run_of(all()[at_]);
        snapshot.replayed = fmt::format("REPLAY {}{}/{} {}", run.host.empty() ? "" : run.host + " ", at_ + 1,
                                        all().size(), playing_ ? fmt::format("{}x", 1 << doublings_) : "stopped");
        snapshot.leaps = leaps;
        screen_.show(std::move(snapshot));
    }

    const Moments& moments_;
    std::vector<TopColumn> columns_;
    size_t at_;
    std::string open_;
    bool playing_ = false;
    int doublings_ = 0;
    uint64_t since_ns_ = 0; // CLOCK_MONOTONIC, when playing began
    uint64_t from_ns_ = 0;  // time of day of the report that was shown when playing began
    Loop loop_;
    Screen screen_;
};

void print(const Moments& moments, const std::vector<TopColumn>& columns, size_t from, const Settings& settings,
           const Options& options)
{
    const std::unique_ptr<Output> output = make_text_output(options.timestamps);
    for (const std::string& text : moments.missing())
        warn(text);
    for (const Moment& moment : std::span(moments.all()).subspan(from)) {
        const Snapshot snapshot = replayed(moment, columns, {});
        print_text(*output, snapshot, settings.arrangement(), options.rows);
        print_verdicts(*output, replayed_verdicts(moment), snapshot);
        output->end_report([] { return std::string("no use of a GPU was recorded"); }, moment.wall_ns);
    }
    output->flush();
}

} // namespace

Preferences replay(const Settings& settings, const Options& options, EndingSignals& signals)
{
    std::optional<ExitOnSignal> until_the_screen_is_shown(std::in_place);
    const Moments moments(std::span(&options.replay, 1), "cudatop");
    std::vector<TopColumn> columns = replayed_columns(moments, options.columns, settings.screen);
    const size_t from = moments.at(options.replay_at);
    if (!settings.screen) {
        print(moments, columns, from, settings, options);
        return {};
    }
    Screen::Options screen = screen_options(settings, options);
    screen.starting.clear(); // a replay has no start-up steps to display
    until_the_screen_is_shown.reset();
    return Player(moments, std::move(columns), from, screen, signals).run();
}

} // namespace gpusnoop::cudatop
