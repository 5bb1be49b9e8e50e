// SPDX-License-Identifier: Apache-2.0
#include "output/weights.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace gpusnoop {
namespace {

// What a table has first in this order, is the usual one.
constexpr Weight weights[] = {
    {"live_bytes", "bytes held"},
    {"blocked_ns", "time blocked outside of calls"},
    {"total_ns", "time in calls"},
    {"wait_ns", "time that others were waited for"},
    {"launches", "launches"},
    {"bytes", "bytes"},
    {"errors", "failed calls"},
    {"failures", "failed calls"},
    {"calls", "calls"},
    {"copies", "copies"},
    {"blocks", "blocks outside of calls"},
    {"allocs", "allocations"},
    {"frees", "frees"},
    {"allocated_bytes", "bytes allocated"},
    {"freed_bytes", "bytes freed"},
    {"live_allocations", "allocations held"},
    {"allocations", "allocations held"},
    {"failed_bytes", "bytes of calls that failed"},
    {"graph_launches", "launches of graphs"},
    {"graph_kernels", "kernels that graphs start"},
    {"kernels_launched", "kernels that graphs start"},
    {"instantiates", "graphs instantiated"},
    {"captures", "captures of graphs"},
    {"captured", "calls captured into graphs"},
    {"synchronous", "copies that the caller waits for"},
    {"small", "copies of less than 64K"},
    {"not_ready", "questions answered by not yet"},
    {"waiting", "calls that have not returned"},
    {"pending", "calls that have not returned"},
    {"latency_total_ns", "time in calls"},
    {"enqueue_ns", "time in calls"},
    {"late_ns", "time that others have waited for it"},
    {"gap_ns", "gaps between launches"},
    {"latency_ns", "time in calls"},
    {"sync_wait_ns", "time that others were waited for"},
};

} // namespace

const Weight lines_weight{"lines", "lines"};

WeightUnit unit_of(const Weight& weight)
{
    return weight.key.ends_with("_ns")     ? WeightUnit::nanoseconds
           : weight.key.ends_with("bytes") ? WeightUnit::bytes
                                           : WeightUnit::count;
}

const Weight* find_weight(std::string_view key)
{
    const auto found = std::ranges::find(weights, key, &Weight::key);
    return found == std::end(weights) ? nullptr : found;
}

std::string weight_names()
{
    std::vector<std::string_view> names;
    for (const Weight& weight : weights)
        names.push_back(weight.key);
    return joined(names, ", ");
}

size_t column_of(std::span<const Column> columns, std::string_view key)
{
    return static_cast<size_t>(std::ranges::find(columns, key, &Column::key) - columns.begin());
}

const Weight* usual_weight(std::span<const Column> columns)
{
    const auto found = std::ranges::find_if(
        weights, [&](const Weight& weight) { return column_of(columns, weight.key) < columns.size(); });
    return found == std::end(weights) ? nullptr : found;
}

const Weight* usual_line_weight(std::span<const Column> columns)
{
    const Weight* const gap = find_weight("gap_ns");
    return column_of(columns, gap->key) < columns.size() ? gap : &lines_weight;
}

std::optional<uint64_t> weight_in(std::span<const Column> columns, const Row& row, std::string_view key)
{
    if (key == lines_weight.key)
        return 1;
    const Cell& cell = cell_at(row, column_of(columns, key));
    if (std::holds_alternative<std::string>(cell) || std::holds_alternative<Dim3>(cell))
        return std::nullopt;
    const double value = sort_value(cell);
    if (const auto* exact = std::get_if<uint64_t>(&cell))
        return *exact;
    return value >= 0 && value < 1.8e19 ? std::optional(static_cast<uint64_t>(std::llround(value))) : std::nullopt;
}

} // namespace gpusnoop
