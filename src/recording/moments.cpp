// SPDX-License-Identifier: Apache-2.0
#include "recording/moments.hpp"

#include "util/error.hpp"
#include "util/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <variant>

namespace gpusnoop {

bool is_main_row(std::string_view by)
{
    return by != "total" && by != "gpu" && by != "diagnosis";
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
    if (record.type() == "lost")
        for (const auto& [key, value] : record.all())
            if (const auto* count = std::get_if<double>(&value); count && *count > 0)
                lost_ += static_cast<uint64_t>(std::min(*count, 1e15));
    const auto wall_ns = wall_ns_of(record.text("time"));
    if (record.type() != "row" || !wall_ns || *wall_ns < 0)
        return;
    if (bytes_ + line.size() > most_) {
        left_out_++;
        return;
    }
    bytes_ += line.size();
    if (runs_.empty() || runs_.back().number != of.number)
        runs_.push_back(of);
    const auto time = static_cast<uint64_t>(*wall_ns);
    if (all_.empty() || all_.back().wall_ns != time || all_.back().run != runs_.size() - 1)
        all_.push_back({runs_.size() - 1, time, record.number("interval_ns").value_or(0) / 1e9, {}});
    all_.back().rows.emplace_back(line);
    if (is_main_row(record.text("by")))
        for (const auto& [key, value] : record.all())
            keys_.insert(key);
}

size_t Moments::at(uint64_t wall_ns) const
{
    const auto found = std::ranges::lower_bound(all_, wall_ns, {}, &Moment::wall_ns);
    return found == all_.end() ? all_.size() - 1 : static_cast<size_t>(found - all_.begin());
}

} // namespace gpusnoop
