// SPDX-License-Identifier: Apache-2.0
#include "recording/moments.hpp"

#include "util/error.hpp"
#include "util/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

constexpr double seconds_max = 1e9;
constexpr size_t keys_max = 1000;

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
    if (all_.empty())
        throw Error(fmt::format("'{}' has no tables of {}", printable(files.front()), tool_),
                    fmt::format("record them with an interval, as: {} -j 1 > FILE, or --record FILE", tool_));
    std::ranges::stable_sort(all_, {}, &Moment::wall_ns);
}

void Moments::take(const RunOf& of, const Record& record, std::string_view line)
{
    if (of.tool != tool_)
        return;
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
    if (all_.empty() || all_.back().wall_ns != *wall_ns || all_.back().run != runs_.size() - 1)
        all_.push_back({runs_.size() - 1,
                        *wall_ns,
                        std::clamp(record.number("interval_ns").value_or(0) / 1e9, 0.0, seconds_max),
                        {}});
    if (all_.back().rows.size() >= rows_max) {
        left_out_++;
        return;
    }
    bytes_ += line.size() + beside;
    all_.back().rows.emplace_back(line);
    if (is_main_row(record.text("by")))
        for (const auto& [key, value] : record.all())
            if (keys_.size() < keys_max)
                keys_.insert(key);
}

size_t Moments::at(uint64_t wall_ns) const
{
    const auto found = std::ranges::lower_bound(all_, wall_ns, {}, &Moment::wall_ns);
    return found == all_.end() ? all_.size() - 1 : static_cast<size_t>(found - all_.begin());
}

} // namespace gpusnoop
