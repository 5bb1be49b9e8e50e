// SPDX-License-Identifier: Apache-2.0
// Texts that describe a comparison: values, changes, and a summary.
#pragma once

#include "tools/cudadiff/comparison.hpp"

#include <string>

namespace gpusnoop::cudadiff {

std::string number_text(double value); // "1,204", "16.5", "0.031"

// A value in the unit of its measure. A time per second is shown as a percentage: "31.2%".
std::string figure_text(const Measure& measure, const WorkUnit& unit, double value);

// "7.30x less", "+12.5%", "new", "gone"; "=" if the difference and its interval are 0, "~" if the difference is not
// significant.
std::string change_text(const Change& change);
std::string interval_text(const Change& change); // "-86.4%..-86.2%"
std::string percent_text(const Change& change);  // "-86.3% (-86.4%..-86.2%)", or "new" if the median of A is 0

// "launches/s", "bytes copied H2D per graph launch".
std::string measure_text(const Compared& row, const WorkUnit& unit);
std::string measure_text(const OneSided& one); // "launches by kernel"

// One sentence on the most important changes: launches, grids, and time in calls.
std::string summary(const Comparison& comparison, const WorkUnit& unit);

} // namespace gpusnoop::cudadiff
