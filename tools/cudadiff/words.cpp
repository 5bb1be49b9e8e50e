// SPDX-License-Identifier: Apache-2.0
#include "tools/cudadiff/words.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

namespace gpusnoop::cudadiff {
namespace {

std::string with_commas(double value)
{
    std::string digits = fmt::format("{:.0f}", value);
    for (size_t at = digits.size(); at > 3 && digits[at - 4] != '-'; at -= 3)
        digits.insert(at - 3, ",");
    return digits;
}

std::string time_text(double ns)
{
    return ns >= second_ns ? fmt::format("{:.2f} s", ns / second_ns)
           : ns >= 1e6     ? fmt::format("{:.2f} ms", ns / 1e6)
                           : fmt::format("{:.2f} us", ns / 1e3);
}

// How many times as large: never 0 or less.
double factor(const Change& change)
{
    const double by = 1 + change.share().value_or(0);
    return by > 0 ? by : change.a > 0 && change.b > 0 ? change.b / change.a : 0;
}

std::string times(double by)
{
    return by >= 100 ? with_commas(by) : fmt::format("{:.{}f}", by, by >= 10 ? 1 : 2);
}

std::string signed_percent(double share)
{
    const double value = share * 100;
    return fmt::format("{:+.{}f}%", value, std::fabs(value) >= 100 ? 0 : 1);
}

// "7.3 times less"; empty where nothing is shown, or too little to be said in times.
std::string in_times(const Compared* row, std::string_view more, std::string_view less)
{
    if (!row || !row->change.shown || row->change.a <= 0 || row->change.b <= 0)
        return {};
    const double by = factor(row->change);
    const double most = std::max(by, 1 / by);
    if (most < 1.05)
        return {};
    return fmt::format("{:.{}f} times {}", most, most >= 10 ? 0 : 1, by > 1 ? more : less);
}

std::string from_to(const Compared& row, const WorkUnit& unit)
{
    const Measure& measure = measures()[row.measure];
    return fmt::format("{} -> {}", figure_text(measure, unit, row.change.a), figure_text(measure, unit, row.change.b));
}

} // namespace

std::string number_text(double value)
{
    if (value == 0)
        return "0";
    if (std::fabs(value) >= 100)
        return with_commas(value);
    return std::fabs(value) >= 1 ? fmt::format("{:.{}f}", value, std::fabs(value) >= 10 ? 1 : 2)
                                 : fmt::format("{:.3g}", value);
}

std::string figure_text(const Measure& measure, const WorkUnit& unit, double value)
{
    if (measure.of == Of::time)
        return unit.of == WorkUnit::Of::second ? fmt::format("{:.1f}%", value * 100) : time_text(value);
    if (measure.shape == Shape::percent)
        return fmt::format("{:.0f}%", value);
    if (measure.shape == Shape::bytes)
        return human_bytes(static_cast<uint64_t>(std::llround(std::min(value, 1e18))));
    return number_text(value);
}

std::string change_text(const Change& change)
{
    if (change.enough && change.difference == 0 && change.low == 0 && change.high == 0)
        return "=";
    if (!change.shown)
        return "~";
    if (change.a <= 0)
        return "new";
    if (change.b <= 0)
        return "gone";
    const double by = factor(change);
    if (by <= 0)
        return "~";
    return by >= 2 ? times(by) + "x more" : by <= 0.5 ? times(1 / by) + "x less" : signed_percent(by - 1);
}

std::string interval_text(const Change& change)
{
    const auto low = change.of_a(change.low), high = change.of_a(change.high);
    if (!change.enough || !low || !high)
        return "";
    return fmt::format("{}..{}", signed_percent(*low), signed_percent(*high));
}

std::string measure_text(const Compared& row, const WorkUnit& unit)
{
    const Measure& measure = measures()[row.measure];
    std::string text(measure.text);
    if (!row.name.empty())
        text += " " + row.name;
    const bool adds_up = measure.of == Of::count || (measure.of == Of::time && unit.of != WorkUnit::Of::second);
    if (adds_up)
        text += unit.of == WorkUnit::Of::second ? "/s" : " per " + unit.text();
    return text;
}

std::string measure_text(const OneSided& one)
{
    const Measure& measure = measures()[one.measure];
    return std::string(measure.text) + (measure.split.empty() ? "" : " by " + std::string(measure.split));
}

std::string summary(const Comparison& comparison, const WorkUnit& unit)
{
    std::vector<std::string> parts, shares;
    const Compared* const launches = comparison.find("launches");
    const Change* const change = launches ? &launches->change : nullptr;
    if (const std::string by = in_times(launches, "more", "less"); !by.empty())
        parts.push_back(fmt::format("B launches {} ({} per {})", by, from_to(*launches, unit), unit.text()));
    else if (change && change->shown && change->b <= 0)
        parts.push_back("B launches no kernels by themselves any more");
    else if (change && change->enough)
        parts.push_back("B launches as often as A");
    const Compared* const grids = comparison.find("grid-p50");
    if (const std::string by = in_times(grids, "larger", "smaller"); !by.empty())
        parts.push_back(fmt::format("{}grids {}", parts.empty() ? "in B, " : "", by));
    for (const auto& [measure, words] :
         {std::pair("launch-time", "time in launch calls"), std::pair("copy-time", "time in copy calls"),
          std::pair("wait-time", "time waiting for the device")})
        if (const Compared* row = comparison.find(measure); row && row->change.shown)
            shares.push_back(fmt::format("{} {}", words, from_to(*row, unit)));
    std::string text = joined(parts, ", ");
    if (!shares.empty())
        text += (text.empty() ? "" : "; ") + joined(shares, ", ");
    if (!text.empty())
        return text;
    const bool any = std::ranges::any_of(comparison.rows, [](const Compared& row) { return row.change.shown; });
    return any ? "launches, grids and times do not differ, or were not recorded; what differs is above"
               : "nothing is shown to differ";
}

} // namespace gpusnoop::cudadiff
