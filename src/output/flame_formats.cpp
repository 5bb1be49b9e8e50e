// SPDX-License-Identifier: Apache-2.0
#include "output/flame_formats.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace gpusnoop {

namespace {

// A table's default metric is the first one in this list for which it has a column.
constexpr Weight weights[] = {
    {"live_bytes", "bytes held"},
    {"blocked_ns", "time blocked outside of calls"},
    {"total_ns", "time in calls"},
    {"wait_ns", "time spent waiting"},
    {"launches", "launches"},
    {"bytes", "bytes"},
    {"errors", "failed calls"},
    {"failures", "failed calls"},
    {"calls", "calls"},
    {"copies", "copies"},
    {"blocks", "blocked periods outside of calls"},
    {"allocs", "allocations"},
    {"frees", "frees"},
    {"allocated_bytes", "bytes allocated"},
    {"freed_bytes", "bytes freed"},
    {"live_allocations", "allocations held"},
    {"allocations", "allocations held"},
    {"failed_bytes", "bytes of failed calls"},
    {"graph_launches", "graph launches"},
    {"graph_kernels", "kernels started by graphs"},
    {"kernels_launched", "kernels started by graphs"},
    {"instantiates", "graph instantiations"},
    {"captures", "graph captures"},
    {"captured", "calls captured into graphs"},
    {"synchronous", "synchronous copies"},
    {"small", "copies of less than 64K"},
    {"not_ready", "completion polls that found work unfinished"},
    {"waiting", "pending calls"},
    {"pending", "pending calls"},
    {"latency_total_ns", "time in calls"},
    {"enqueue_ns", "time in calls"},
    {"late_ns", "time that other ranks waited"},
    {"gap_ns", "gaps between launches"},
    {"latency_ns", "time in calls"},
    {"sync_wait_ns", "time spent waiting"},
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

const Weight* default_weight(std::span<const Column> columns)
{
    const auto found = std::ranges::find_if(
        weights, [&](const Weight& weight) { return column_of(columns, weight.key) < columns.size(); });
    return found == std::end(weights) ? nullptr : found;
}

const Weight* default_line_weight(std::span<const Column> columns)
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

std::span<const FlameFormat> flame_formats()
{
    static constexpr FlameFormat forms[] = {
        {"--svg", "write a flame graph of the stacks (-U), for a browser, to this file", svg_begin, svg_flames},
        {"--pprof", "write the flame graph as a profile for pprof or Parca", "\x1f\x8b\x08", pprof_flames},
        {"--speedscope", "write the flame graph for speedscope.app", speedscope_begin, speedscope_flames},
    };
    return forms;
}

std::string weight_text(const Weight& weight, uint64_t value)
{
    switch (unit_of(weight)) {
    case WeightUnit::bytes:
        return human_bytes(value) + (value < 1024 ? " bytes" : "B");
    case WeightUnit::nanoseconds:
        return fmt::format("{:.6f} s", static_cast<double>(value) / 1e9);
    case WeightUnit::count:
        break;
    }
    std::string rest;
    for (; value >= 1000; value /= 1000)
        rest = fmt::format(",{:03}{}", value % 1000, rest);
    return fmt::format("{}{}", value, rest);
}

// Writes one line per stack, in the format of flamegraph.pl.
std::string folded_flames(const Flames& flames)
{
    std::string text;
    const auto nodes = flames.stacks.nodes();
    for (uint32_t i = 0; i < nodes.size(); i++) {
        if (!nodes[i].own)
            continue;
        bool first = true;
        const std::vector<uint32_t> frames = flames.stacks.stack_of(i);
        for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
            std::string name(flames.stacks.name(nodes[*frame]));
            std::ranges::replace(name, ';', ':');
            text += (first ? "" : ";") + name;
            first = false;
        }
        append_format(text, "{} {}\n", first ? "?" : "", nodes[i].own);
    }
    return text;
}

// Format: https://www.speedscope.app/file-format-schema.json

std::string speedscope_flames(const Flames& flames)
{
    constexpr std::string_view units[] = {"none", "bytes", "nanoseconds"};
    const StackTree& stacks = flames.stacks;
    std::string text =
        fmt::format(R"({} {}","$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[)",
                    speedscope_begin, flames.version);
    for (uint32_t name = 1; name < stacks.names(); name++) {
        text += name == 1 ? R"({"name":)" : R"(,{"name":)";
        append_json_string(text, stacks.name(name));
        text += '}';
    }
    std::string samples, weights;
    uint64_t sum = 0;
    const auto nodes = stacks.nodes();
    for (uint32_t i = 1; i < nodes.size(); i++) {
        if (!nodes[i].own)
            continue;
        samples += samples.empty() ? "[" : ",[";
        const std::vector<uint32_t> frames = stacks.stack_of(i);
        for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
            append_format(samples, "{}{}", samples.back() == '[' ? "" : ",", nodes[*frame].name - 1);
        samples += ']';
        append_format(weights, "{}{}", weights.empty() ? "" : ",", nodes[i].own);
        sum += nodes[i].own;
    }
    std::string name = fmt::format("{}: {}", flames.tool, flames.weight.text);
    if (!flames.missing.empty())
        name += fmt::format(" ({})", flames.missing);
    text += R"(]},"profiles":[{"type":"sampled","name":)";
    append_json_string(text, name);
    append_format(text, R"(,"unit":"{}","startValue":0,"endValue":{},"samples":[{}],"weights":[{}]}}],"name":)",
                  units[static_cast<size_t>(unit_of(flames.weight))], sum, samples, weights);
    append_json_string(text, flames.command_line);
    return text += "}\n";
}

} // namespace gpusnoop
