// SPDX-License-Identifier: Apache-2.0
// Measures that are compared, and the tools and JSON keys that they are read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gpusnoop::cudadiff {

constexpr double second_ns = 1e9;

enum class MeasureKind : uint8_t {
    count, // summed; compared per second, or per unit of work
    time,  // summed nanoseconds; compared as a share of wall time, or per unit of work
    level, // averaged over time
    size,  // a percentile over calls
    ratio, // of two other measures
};

enum class Shape : uint8_t { number, bytes, percent };

// Groups of calls whose time is summed, to estimate the cost of a change in their number.
enum class Family : uint8_t { launch, copy, wait, memory, graph, device };

struct Source {
    std::string_view tool;
    std::string_view key;
    std::string_view weight{};  // for a size: key of the number of calls with this size
    std::string_view rows = ""; // for cudatop: the rows whose "by" is this; empty: rows of processes and pods
};

struct Measure {
    std::string_view name; // name in --fail-if and JSON
    std::string_view text; // name in tables
    MeasureKind kind = MeasureKind::count;
    Shape shape = Shape::number;
    Family family = Family::launch;
    Source sources[3]{};      // the first one that both recordings have is used
    std::string_view split{}; // key by whose values the measure is split; empty: not split
    double percentile = 0;    // for a size
    bool optional = false;    // for a count: recorded only with an option
    std::string_view part{};  // for a ratio: names of the two measures
    std::string_view whole{};
};

std::span<const Measure> measures();
// The index of a measure; measures().size() if there is none.
size_t measure_number(std::string_view name);

} // namespace gpusnoop::cudadiff
