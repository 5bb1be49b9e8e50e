// SPDX-License-Identifier: Apache-2.0
// What of two recordings is compared, and which keys of which tool say it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gpusnoop::cudadiff {

constexpr double second_ns = 1e9;

enum class Of : uint8_t {
    count, // adds up; compared per second, or per unit of work
    time,  // the same, of nanoseconds; compared as a share of the time by the clock, or per unit of work
    level, // averaged over time
    size,  // of each of so many calls: a percentile
    ratio, // of two counts
};

enum class Shape : uint8_t { number, bytes, percent };

// What the time of calls is added up by: that says what a change of their number costs.
enum class Family : uint8_t { launch, copy, wait, memory, graph, device };

struct Source {
    std::string_view tool;
    std::string_view key;
    std::string_view weight{};  // of a size: how many calls had it
    std::string_view rows = ""; // of cudatop: only those with this "by"; empty: those of processes and pods
};

struct Measure {
    std::string_view name; // as --fail-if and JSON have it
    std::string_view text; // as people read it
    Of of = Of::count;
    Shape shape = Shape::number;
    Family family = Family::launch;
    Source sources[3]{};      // the first that both recordings have
    std::string_view split{}; // a key: one measure for each of its texts
    double percentile = 0;    // of a size
    bool optional = false;    // of a count: no row has it unless it was asked for
    std::string_view part{};  // of a ratio: the names of two measures
    std::string_view whole{};
};

std::span<const Measure> measures();
// Its place among them; their number where there is none.
size_t measure_number(std::string_view name);

} // namespace gpusnoop::cudadiff
