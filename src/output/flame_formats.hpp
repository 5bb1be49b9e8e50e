// SPDX-License-Identifier: Apache-2.0
// The forms that flame graphs are written in, one row each.
#pragma once

#include "output/flames_output.hpp"
#include "rows/table.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

// What flames can be as wide as: columns of rows that add up.
struct Weight {
    std::string_view key;  // of the column
    std::string_view text; // "kernel launches"
};

enum class WeightUnit : uint8_t { count, bytes, nanoseconds };
WeightUnit unit_of(const Weight& weight);

// By name; null where there is none.
const Weight* find_weight(std::string_view key);
std::string weight_names(); // "launches, bytes"

// What rows with these columns are weighed by where nobody says: null where they have nothing that adds up.
const Weight* default_weight(std::span<const Column> columns);
// Lines without a figure of their own count as one each.
extern const Weight lines_weight;
const Weight* default_line_weight(std::span<const Column> columns);

// nullopt where it is not known.
std::optional<uint64_t> weight_in(std::span<const Column> columns, const Row& row, std::string_view key);

// The column with that key; one behind the last where there is none.
size_t column_of(std::span<const Column> columns, std::string_view key);

// All of a run, as it is written.
struct Flames {
    const StackTree& stacks;
    const Weight& weight;
    std::string_view tool;
    std::string_view version;
    std::string_view command_line;
    uint64_t wall_ns = 0; // when it began
    uint64_t length_ns = 0;
    std::string_view missing; // a sentence on what is not in it; empty: nothing
};

struct FlameFormat {
    std::string_view option; // "--svg"
    std::string_view help;
    std::string_view begin; // of such a file
    std::string (*write)(const Flames&);
};

std::span<const FlameFormat> flame_formats(); // in files

std::string folded_flames(const Flames& flames);
std::string svg_flames(const Flames& flames);
std::string pprof_flames(const Flames& flames);
std::string speedscope_flames(const Flames& flames);

// "1,234 launches", "1.5G", "2.500000 s"
std::string weight_text(const Weight& weight, uint64_t value);

// What all svg_flames() begin with, and what all speedscope_flames() do.
inline constexpr std::string_view svg_begin = R"(<svg data-by="gpusnoop")";
inline constexpr std::string_view speedscope_begin = R"({"exporter":"gpusnoop)";

} // namespace gpusnoop
