// SPDX-License-Identifier: Apache-2.0
// The comparison of two sides: changes, their size, and their cost.
#pragma once

#include "tools/cudadiff/change.hpp"
#include "tools/cudadiff/side.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop::cudadiff {

// The unit of work that counts and sums are divided by.
struct WorkUnit {
    enum class Kind : uint8_t { second, graph_launch, kernel } kind = Kind::second;
    std::string kernel; // part of its name

    // "second", "graph-launch", "kernel:NAME". Throws UsageError.
    static WorkUnit parse(std::string_view text);
    std::string text() const; // "second", "graph launch", "launch of NAME"
};

struct Compared {
    std::string group;
    size_t measure = 0;
    std::string name; // of a measure that is split
    Change change;
    double cost = 0; // difference of the time in such calls, as a share of wall time

    // "copies:H2D"
    std::string full_name() const;
};

// A measure that was recorded on one side only.
struct OneSided {
    size_t measure = 0;
    bool in_a = false;
};

struct Comparison {
    std::vector<Compared> rows;         // the highest cost first
    std::vector<Compared> kernels;      // launches of each, the largest difference first
    std::vector<Compared> kernel_grids; // of kernels on both sides
    std::vector<OneSided> one_sided;
    std::vector<std::string> groups_only_a, groups_only_b;

    const Compared* find(std::string_view measure, const std::string& group = {}) const; // null: not compared
};

// Throws Error if the sides have no figure in common, or one of them has no unit of work.
Comparison compare(const Side& a, const Side& b, const WorkUnit& unit);

} // namespace gpusnoop::cudadiff
