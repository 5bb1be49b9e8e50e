// SPDX-License-Identifier: Apache-2.0
#include "tools/cudadiff/figures.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace gpusnoop::cudadiff {
namespace {

const Source& source_of(const Series& series)
{
    return measures()[series.measure].sources[series.source];
}

// Percentile of the sizes of calls (share 0.95: p95).
double percentile(const std::map<double, double>& sizes, double share)
{
    double all = 0, below = 0;
    for (const auto& [size, weight] : sizes)
        all += weight;
    for (const auto& [size, weight] : sizes)
        if ((below += weight) >= share * all)
            return size;
    return 0;
}

} // namespace

Figures::Figures(const Side& side, const WorkUnit& unit, std::string_view name) : side_(side), unit_(unit), name_(name)
{}

const std::vector<Block>& Figures::blocks(const Series& series)
{
    const std::string_view tool = source_of(series).tool;
    const auto [at, is_new] = blocks_.try_emplace({tool, series.group});
    if (is_new)
        at->second = side_.blocks(tool, series.group);
    return at->second;
}

bool Figures::is_unit(const Series& series) const
{
    if (unit_.kind == WorkUnit::Kind::kernel)
        return series.measure == measure_number("kernel") && series.name.find(unit_.kernel) != std::string::npos;
    return series.measure == measure_number("graph-launches");
}

double Figures::units(const Block& block, const std::string& group) const
{
    double all = 0;
    for (const auto& [series, sum] : block.sums)
        if (series.group == group && is_unit(series))
            all += sum.sum;
    return all;
}

// Average number of units of work per second in the group, from the first tool whose recording counts them; 0 if none
// does. divisor() uses it for blocks without counted units.
double Figures::units_per_second(const std::string& group)
{
    for (const Series& series : side_.series()) {
        if (series.group != group || !is_unit(series))
            continue;
        double all = 0, seconds = 0;
        for (const Block& block : blocks(series)) {
            all += units(block, group);
            seconds += block.seconds;
        }
        if (all > 0 && seconds > 0)
            return all / seconds;
    }
    return 0;
}

void Figures::require_units()
{
    if (unit_.kind != WorkUnit::Kind::second && units_per_second("") <= 0)
        throw Error(fmt::format("{} has no {} to compare by (--per)", name_, printable(unit_.text())),
                    "record graph launches with cudalaunch, cudagraph or cudatop, and kernels with cudalaunch");
}

// The divisor of the block's values: its duration in seconds, or its number of units of work. 0 if that number is
// unknown; the block then has no value.
double Figures::divisor(const Block& block, const Series& series)
{
    if (unit_.kind == WorkUnit::Kind::second)
        return block.seconds;
    // If a block has no units of work, for example because its tool does not count them, use the group's average rate.
    const double counted = units(block, series.group);
    return counted > 0 ? counted : block.seconds * units_per_second(series.group);
}

std::vector<double> Figures::values(const Series& series)
{
    const Measure& measure = measures()[series.measure];
    std::vector<double> values;
    for (const Block& block : blocks(series)) {
        const Sum* const sum = block.find(series);
        if (measure.kind == MeasureKind::size) {
            if (sum && !sum->sizes.empty())
                values.push_back(percentile(sum->sizes, measure.percentile));
            continue;
        }
        const double value = sum ? sum->sum : 0;
        if (measure.kind == MeasureKind::level) {
            if (sum)
                values.push_back(value / (block.seconds * second_ns));
        } else if (measure.kind == MeasureKind::time && unit_.kind == WorkUnit::Kind::second) {
            values.push_back(value / (block.seconds * second_ns));
        } else if (const double by = divisor(block, series); by > 0) {
            values.push_back(value / by);
        }
    }
    return values;
}

std::vector<double> Figures::share(const Series& series)
{
    std::vector<double> values;
    for (const Block& block : blocks(series)) {
        const Sum* const sum = block.find(series);
        values.push_back((sum ? sum->sum : 0) / (block.seconds * second_ns));
    }
    return values;
}

std::vector<double> Figures::ratio(const Series& part, const Series& whole)
{
    std::vector<double> values;
    for (const Block& block : blocks(whole)) {
        const Sum *const numerator = block.find(part), *const denominator = block.find(whole);
        if (numerator && denominator && denominator->sum > 0)
            values.push_back(numerator->sum / denominator->sum);
    }
    return values;
}

} // namespace gpusnoop::cudadiff
