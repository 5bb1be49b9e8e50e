// SPDX-License-Identifier: Apache-2.0
// Measures to compare, with the tools and JSON keys from which they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gpusnoop::cudadiff {

constexpr double second_ns = 1e9;

enum class MeasureKind : uint8_t {
    count, // a sum; compared per second, or per unit of work
    time,  // a sum of nanoseconds; compared as a share of wall time, or per unit of work
    level, // an average over time
    size,  // a percentile over calls
    ratio, // the ratio of two other measures
};

enum class Shape : uint8_t { number, bytes, percent };

// Families of calls. The cost of a changed measure is estimated as the change of the time spent in calls of its family.
enum class Family : uint8_t { launch, copy, wait, memory, graph, device };

struct Source {
    std::string_view tool;
    std::string_view key;
    std::string_view weight{};  // for a size: key that has the number of calls of this size
    std::string_view rows = ""; // for cudatop: value of "by" in the rows to read; empty: rows of processes and pods
};

struct Measure {
    std::string_view name; // name in --fail-if and JSON
    std::string_view text; // name in tables
    MeasureKind kind = MeasureKind::count;
    Shape shape = Shape::number;
    Family family = Family::launch;
    Source sources[3]{};      // in order of preference: the first source that both recordings have is used
    std::string_view split{}; // key by whose values the measure is split; empty: not split
    double percentile = 0;    // for a size: percentile, from 0 to 1
    bool optional = false;    // for a count: recorded only with an option, so a missing count is unknown, not 0
    std::string_view part{};  // for a ratio: name of the measure in the numerator
    std::string_view whole{}; // for a ratio: name of the measure in the denominator
};

std::span<const Measure> measures();
// Index of the measure with this name; measures().size() if there is none.
size_t measure_number(std::string_view name);

} // namespace gpusnoop::cudadiff
