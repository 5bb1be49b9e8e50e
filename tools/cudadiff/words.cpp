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

// B as a multiple of A; greater than 0 if A and B are.
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

struct Relative {
    double factor; // B as a multiple of A
    std::string times() const { return fmt::format("{:.{}f} times", factor, factor >= 10 ? 0 : 1); }
    std::string percent() const
    {
        const double value = 100 * std::fabs(factor - 1);
        return fmt::format("{:.{}f}%", value, factor < 1 && value >= 99 ? 1 : 0);
    }
};

// nullopt if the change is not significant, or below 5%.
std::optional<Relative> relative(const Compared* row)
{
    constexpr double min_factor = 1.05;
    if (!row || !row->change.significant || row->change.a <= 0 || row->change.b <= 0)
        return {};
    const double by = factor(row->change);
    return std::max(by, 1 / by) < min_factor ? std::nullopt : std::optional(Relative{by});
}

// "85% fewer launches", "20% more launches", "6.5 times as many launches"
std::string launches_text(const Relative& change)
{
    if (change.factor >= 2)
        return change.times() + " as many launches";
    return fmt::format("{} {} launches", change.percent(), change.factor > 1 ? "more" : "fewer");
}

// "grids 80% smaller", "grids 16 times as large"
std::string grids_text(const Relative& change)
{
    if (change.factor >= 2)
        return fmt::format("grids {} as large", change.times());
    return fmt::format("grids {} {}", change.percent(), change.factor > 1 ? "larger" : "smaller");
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
    if (measure.kind == MeasureKind::time)
        return unit.kind == WorkUnit::Kind::second ? fmt::format("{:.1f}%", value * 100) : time_text(value);
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
    if (!change.significant)
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
    const auto low = change.relative_to_a(change.low), high = change.relative_to_a(change.high);
    if (!change.enough || !low || !high)
        return "";
    return fmt::format("{}..{}", signed_percent(*low), signed_percent(*high));
}

std::string percent_text(const Change& change)
{
    const auto share = change.share();
    return share ? fmt::format("{} ({})", signed_percent(*share), interval_text(change)) : "new";
}

std::string measure_text(const Compared& row, const WorkUnit& unit)
{
    const Measure& measure = measures()[row.measure];
    std::string text(measure.text);
    if (!row.name.empty())
        text += " " + row.name;
    const bool adds_up = measure.kind == MeasureKind::count ||
                         (measure.kind == MeasureKind::time && unit.kind != WorkUnit::Kind::second);
    if (adds_up)
        text += unit.kind == WorkUnit::Kind::second ? "/s" : " per " + unit.text();
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
    if (const auto relative_change = relative(launches))
        parts.push_back(fmt::format("B makes {} ({} per {})", launches_text(*relative_change), from_to(*launches, unit),
                                    unit.text()));
    else if (change && change->significant && change->b <= 0)
        parts.push_back("B no longer launches kernels outside of graphs");
    else if (change && change->enough)
        parts.push_back("B launches as often as A");
    if (const auto relative_change = relative(comparison.find("grid-p50")))
        parts.push_back(fmt::format("{} {}", parts.empty() ? "B has" : "with", grids_text(*relative_change)));
    for (const auto& [measure, words] :
         {std::pair("launch-time", "time in launch calls"), std::pair("copy-time", "time in copy calls"),
          std::pair("wait-time", "time waiting for the GPU")})
        if (const Compared* row = comparison.find(measure); row && row->change.significant)
            shares.push_back(fmt::format("{} {}", words, from_to(*row, unit)));
    std::string text = joined(parts, ", ");
    if (!shares.empty())
        text += (text.empty() ? "" : "; ") + joined(shares, ", ");
    if (!text.empty())
        return text;
    const bool any = std::ranges::any_of(comparison.rows, [](const Compared& row) { return row.change.significant; });
    return any ? "launches, grid sizes and times do not differ significantly, or were not recorded; for the measures "
                 "that differ, see the table"
               : "no significant differences";
}

} // namespace gpusnoop::cudadiff
