// SPDX-License-Identifier: Apache-2.0
// Two sides, compared: what has changed, by how much, and what that costs.
#pragma once

#include "tools/cudadiff/change.hpp"
#include "tools/cudadiff/side.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop::cudadiff {

// What figures that add up are divided by.
struct WorkUnit {
    enum class Of : uint8_t { second, graph_launch, kernel } of = Of::second;
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
    double cost = 0; // by how much the time in such calls differs, as a share of the time by the clock

    // "copies:H2D"
    std::string full_name() const;
};

// What was recorded on one side only, and cannot be compared.
struct OneSided {
    size_t measure = 0;
    bool in_a = false;
};

struct Comparison {
    std::vector<Compared> rows;         // the dearest first
    std::vector<Compared> kernels;      // launches of each, the largest difference first
    std::vector<Compared> kernel_grids; // of those that both have
    std::vector<OneSided> one_sided;
    std::vector<std::string> groups_only_a, groups_only_b;

    const Compared* find(std::string_view measure, const std::string& group = {}) const; // not of a split one
};

// Throws Error where there is nothing that both have, or no unit of work in one of them.
Comparison compare(const Side& a, const Side& b, const WorkUnit& unit);

} // namespace gpusnoop::cudadiff
