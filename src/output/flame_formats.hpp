// SPDX-License-Identifier: Apache-2.0
// Flame graph formats, and the metrics that determine the width of frames.
#pragma once

#include "output/flames_output.hpp"
#include "rows/table.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

// A metric that determines the width of frames: a column whose values can be summed.
struct Weight {
    std::string_view key;  // JSON key of the column
    std::string_view text; // title in the graph, such as "bytes allocated"
};

enum class WeightUnit : uint8_t { count, bytes, nanoseconds };
WeightUnit unit_of(const Weight& weight);

// The metric with this key; null if there is none.
const Weight* find_weight(std::string_view key);
std::string weight_names(); // names of all metrics, "launches, bytes, ..."

// The metric for rows with these columns if --weight is not given; null if no column can be summed.
const Weight* default_weight(std::span<const Column> columns);
// A metric that counts lines: its value is 1 for each line.
extern const Weight lines_weight;
const Weight* default_line_weight(std::span<const Column> columns);

// The row's value in the column with this key; nullopt if the column is missing or the cell is empty.
std::optional<uint64_t> weight_in(std::span<const Column> columns, const Row& row, std::string_view key);

// Index of the column with this key; columns.size() if there is none.
size_t column_of(std::span<const Column> columns, std::string_view key);

// Data shown in a flame graph.
struct Flames {
    const StackTree& stacks;
    const Weight& weight;
    std::string_view tool;
    std::string_view version;
    std::string_view command_line;
    uint64_t wall_ns = 0; // time of day at the start of the run
    uint64_t length_ns = 0;
    std::string_view missing; // a sentence about missing data; empty if nothing is missing
};

struct FlameFormat {
    std::string_view option; // "--svg"
    std::string_view help;
    std::string_view begin; // first bytes of a file in this format
    std::string (*write)(const Flames&);
};

std::span<const FlameFormat> flame_formats(); // formats that are written to files

std::string folded_flames(const Flames& flames);
std::string svg_flames(const Flames& flames);
std::string pprof_flames(const Flames& flames);
std::string speedscope_flames(const Flames& flames);

// Formats a value with its unit: "1.5GB", "2.500000 s". Counts have no unit: "1,234".
std::string weight_text(const Weight& weight, uint64_t value);

// The first bytes of all files that svg_flames() and speedscope_flames() write, respectively.
inline constexpr std::string_view svg_begin = R"(<svg data-by="gpusnoop")";
inline constexpr std::string_view speedscope_begin = R"({"exporter":"gpusnoop)";

} // namespace gpusnoop
