// SPDX-License-Identifier: Apache-2.0
// Comparison of two sides: which measures changed, by how much, and how much time that costs.
#pragma once

#include "tools/cudadiff/change.hpp"
#include "tools/cudadiff/side.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop::cudadiff {

// Unit of work (--per). Counts and sums are divided by the number of these units.
struct WorkUnit {
    enum class Kind : uint8_t { second, graph_launch, kernel } kind = Kind::second;
    std::string kernel; // for Kind::kernel: part of the kernel's name

    // "second", "graph-launch", "kernel:NAME". Throws UsageError.
    static WorkUnit parse(std::string_view text);
    std::string text() const; // "second", "graph launch", "launch of NAME"
};

struct Compared {
    std::string group;
    size_t measure = 0;
    std::string name; // value of the key by which the measure is split, such as "H2D"; empty if it is not split
    Change change;
    double cost = 0; // change of the time in calls of the measure's family, such as all copy calls, as a share of wall
                     // time

    // "copies:H2D"
    std::string full_name() const;
};

// A measure that only one side has recorded.
struct OneSided {
    size_t measure = 0;
    bool in_a = false;
};

struct Comparison {
    std::vector<Compared> rows;         // sorted by cost, highest first
    std::vector<Compared> kernels;      // launches of each kernel, sorted by difference, largest first
    std::vector<Compared> kernel_grids; // grid sizes of kernels that both sides launched
    std::vector<OneSided> one_sided;
    std::vector<std::string> groups_only_a, groups_only_b;

    const Compared* find(std::string_view measure, const std::string& group = {}) const; // null if not compared
};

// Throws Error if the sides have no measure in common, or if one side has no unit of work.
Comparison compare(const Side& a, const Side& b, const WorkUnit& unit);

} // namespace gpusnoop::cudadiff
