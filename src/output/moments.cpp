// SPDX-License-Identifier: Apache-2.0
#include "output/moments.hpp"

#include "base/error.hpp"
#include "base/options.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

constexpr double seconds_max = 1e9;
constexpr size_t keys_max = 1000, tools_max = 16;
constexpr uint64_t second_ns = 1'000'000'000, day_ns = 86'400 * second_ns;

} // namespace

bool is_main_row(std::string_view by)
{
    return by != "total" && by != "gpu" && by != "diagnosis";
}

std::optional<uint64_t> moment_of(std::string_view time)
{
    constexpr double most = 530.0 * 365.25 * 86400 * 1e9;
    const auto wall_ns = wall_ns_of(time);
    return wall_ns && *wall_ns >= 0 && *wall_ns < most ? std::optional(static_cast<uint64_t>(*wall_ns)) : std::nullopt;
}

Moments::Moments(std::span<const std::string> files, std::string_view tool, size_t most) : tool_(tool), most_(most)
{
    unread_ = read_recording(
        files, [this](const RunOf& of, const Record& record, std::string_view line) { take(of, record, line); });
    if (all_.empty() && !other_tools_.empty())
        throw Error(fmt::format("'{}' is a recording of {}, not of {}", printable(files.front()),
                                printable(joined(other_tools_, ", ")), tool_));
    if (all_.empty())
        throw Error(fmt::format("'{}' has no tables of {}", printable(files.front()), tool_),
                    fmt::format("record them with an interval, as: {} -j 1 > FILE, or --record FILE", tool_));
    std::ranges::stable_sort(all_, {}, &Moment::wall_ns);
}

void Moments::take(const RunOf& of, const Record& record, std::string_view line)
{
    if (of.tool != tool_) {
        if (!of.tool.empty() && other_tools_.size() < tools_max)
            other_tools_.insert(of.tool);
        return;
    }
    if (record.type() == "table")
        return take_table(of, record);
    lost_ += lost_in(record);
    const auto wall_ns = moment_of(record.text("time"));
    if (record.type() != "row" || !wall_ns)
        return;
    if (bytes_ + line.size() + beside > most_) {
        left_out_++;
        return;
    }
    if (runs_.empty() || runs_.back().number != of.number)
        runs_.push_back(of);
    const auto found = table_of_run_.find(of.number);
    const auto table = found == table_of_run_.end() ? std::nullopt : std::optional(found->second);
    // Rows beside the main ones are of the same report, though they have a table of their own.
    const bool main = is_main_row(record.text("by"));
    if (all_.empty() || all_.back().wall_ns != *wall_ns || all_.back().run != runs_.size() - 1 ||
        (main && all_.back().table != table))
        all_.push_back({runs_.size() - 1,
                        *wall_ns,
                        std::clamp(record.number("interval_ns").value_or(0) / 1e9, 0.0, seconds_max),
                        {},
                        table});
    if (all_.back().rows.size() >= rows_max) {
        left_out_++;
        return;
    }
    bytes_ += line.size() + beside;
    all_.back().rows.emplace_back(line);
    if (main)
        for (const auto& [key, value] : record.all())
            if (keys_.size() < keys_max)
                keys_.insert(key);
}

void Moments::take_table(const RunOf& of, const Record& record)
{
    const Record::Texts* columns = record.texts("columns");
    if (!columns)
        return;
    const auto found = std::ranges::find(tables_, *columns);
    if (found == tables_.end() && tables_.size() >= tables_max)
        return void(table_of_run_.erase(of.number));
    table_of_run_[of.number] = static_cast<size_t>(found - tables_.begin());
    if (found == tables_.end())
        tables_.push_back(*columns);
}

size_t Moments::at(const std::string& time) const
{
    if (time.empty())
        return 0;
    if (const auto wall_ns = moment_of(time))
        return at(*wall_ns);
    const uint64_t begin = all_.front().wall_ns;
    auto seconds = static_cast<time_t>(begin / second_ns);
    tm local{};
    localtime_r(&seconds, &local);
    int end = 0;
    if (sscanf(time.c_str(), "%2d:%2d:%2d%n", &local.tm_hour, &local.tm_min, &local.tm_sec, &end) != 3 ||
        static_cast<size_t>(end) != time.size())
        throw UsageError(fmt::format("--at takes a time such as 10:05:30, or as JSON has it, not '{}'", time));
    local.tm_isdst = -1;
    const uint64_t wall_ns = static_cast<uint64_t>(mktime(&local)) * second_ns;
    return at(wall_ns + second_ns < begin ? wall_ns + day_ns : wall_ns); // past midnight
}

std::vector<std::string> Moments::missing() const
{
    std::vector<std::string> all;
    if (unread_.damage.cut_off)
        all.emplace_back("the recording is cut off: what was being written is left out");
    if (const uint64_t lines = unread_.not_json + unread_.damage.long_lines)
        all.push_back(fmt::format("{} lines of the recording are no JSON of {}", lines, tool_));
    if (unread_.damage.bytes)
        all.push_back(fmt::format("{} bytes of the recording are damaged", unread_.damage.bytes));
    if (unread_.other_schema)
        all.push_back(fmt::format("{} lines are of a version whose keys mean something else", unread_.other_schema));
    if (left_out_)
        all.push_back(fmt::format("there is no room for {} rows of the recording", left_out_));
    if (lost_)
        all.push_back(fmt::format("{} events were lost when it was recorded", lost_));
    return all;
}

size_t Moments::at(uint64_t wall_ns) const
{
    const auto found = std::ranges::lower_bound(all_, wall_ns, {}, &Moment::wall_ns);
    return found == all_.end() ? all_.size() - 1 : static_cast<size_t>(found - all_.begin());
}

} // namespace gpusnoop
