// SPDX-License-Identifier: Apache-2.0
// A comparison in words.
#pragma once

#include "tools/cudadiff/comparison.hpp"

#include <string>

namespace gpusnoop::cudadiff {

std::string number_text(double value); // "1,204", "16.5", "0.031"

// A figure of a measure, in its unit: "31.2%" of a time per second.
std::string figure_text(const Measure& measure, const WorkUnit& unit, double value);

// "7.30x less", "+12.5%", "new", "gone"; "=" where all are the same, "~" where nothing is shown.
std::string change_text(const Change& change);
std::string interval_text(const Change& change); // "-86.4..-86.2%"

// "launches/s", "bytes copied H2D per graph launch".
std::string measure_text(const Compared& row, const WorkUnit& unit);
std::string measure_text(const OneSided& one); // "launches by kernel"

// One sentence about the whole: launches, grids, and where the time goes.
std::string summary(const Comparison& comparison, const WorkUnit& unit);

} // namespace gpusnoop::cudadiff
