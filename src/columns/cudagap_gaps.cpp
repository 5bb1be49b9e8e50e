// SPDX-License-Identifier: Apache-2.0
// Gaps between launches: lines, and histograms.
#include "calls/label.hpp"
#include "columns/cudagap_columns.hpp"
#include "columns/cudagap_parts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

namespace gpusnoop::cudagap {
namespace {

using C = Context;
using L = GapLine;

TimeParts parts_of(const gap_record& gap)
{
    TimeParts parts{};
    std::ranges::copy(gap.ns, parts.begin());
    return parts;
}

template<time_part part>
constexpr Field<C, L> part_field = {{"", part_names[part].key, Unit::count}, json_only<C>, [](const L& l, const C&) {
                                        return Cell(uint64_t{l.call.ns[part]});
                                    }};

const Field<C, L> fields_of_lines[] = {
    {{"GAP(us)", "gap_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const L& l, const C&) { return Cell(uint64_t{l.call.gap_ns}); }},
    part_field<TIME_LAUNCH>,
    part_field<TIME_COPY>,
    part_field<TIME_WAIT>,
    part_field<TIME_MEMORY>,
    part_field<TIME_CALL>,
    part_field<TIME_CPU>,
    part_field<TIME_RUNQ>,
    part_field<TIME_THROTTLED>,
    part_field<TIME_LOCK>,
    part_field<TIME_POLL>,
    part_field<TIME_PIPE>,
    part_field<TIME_SOCKET>,
    part_field<TIME_DISK>,
    part_field<TIME_FAULT>,
    part_field<TIME_SLEEP>,
    part_field<TIME_DRIVER>,
    part_field<TIME_CHILD>,
    part_field<TIME_OTHER>,
    {{"REASONS", "", Unit::text, 8},
     always<C>,
     [](const L& l, const C&) { return Cell(largest_parts(parts_of(l.call))); }},
};

// Of all buckets that this octave has.
std::string note(const GapGroup& group, unsigned octave)
{
    TimeParts parts{};
    for (const auto& [bucket, more] : group.parts)
        if (log2_floor(std::max<uint64_t>(Histogram::bucket_low(bucket), 1)) == octave)
            std::ranges::transform(parts, more, parts.begin(), std::plus<>());
    return largest_parts(parts);
}

std::vector<std::pair<std::string_view, uint64_t>> fields_of_bucket(const GapGroup& group, unsigned bucket)
{
    std::vector<std::pair<std::string_view, uint64_t>> fields;
    const TimeParts& parts = group.parts.at(bucket);
    for (size_t part = 0; part < TIME_PARTS; part++)
        fields.emplace_back(part_names[part].key, parts[part]);
    return fields;
}

} // namespace

std::string largest_parts(const TimeParts& parts)
{
    constexpr size_t most = 4;
    constexpr double least = 1;
    const auto all = static_cast<double>(std::accumulate(parts.begin(), parts.end(), uint64_t{0}));
    std::array<size_t, TIME_PARTS> order{};
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t part) { return parts[part]; });
    std::string text;
    for (size_t part : std::span(order).first(most))
        if (const double percent = 100 * static_cast<double>(parts[part]) / all; percent >= least) {
            const std::string_view header = part_names[part].header;
            text += fmt::format("{}{} {:.0f}%", text.empty() ? "" : ", ", header.substr(0, header.size() - 1), percent);
        }
    return text;
}

std::span<const Field<Context, GapLine>> line_fields()
{
    return fields_of_lines;
}

void print_histograms(Output& output, const std::map<TimeKey, GapGroup>& groups, const Context& context,
                      uint64_t wall_ns)
{
    for (const auto& [key, group] : groups) {
        Label label;
        label.fields.emplace_back("measure", context.settings.measure);
        label.add_who(context.who(), key.who, group.who, context.processes);
        output.histogram(label.title, context.options.unit_name(), group.gaps, label.fields, wall_ns,
                         {.text = [&group](unsigned octave) { return note(group, octave); },
                          .fields = [&group](unsigned bucket) { return fields_of_bucket(group, bucket); }});
    }
}

} // namespace gpusnoop::cudagap
