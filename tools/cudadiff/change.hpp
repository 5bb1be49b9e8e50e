// SPDX-License-Identifier: Apache-2.0
// How much one sequence of figures differs from another, and whether that is more than they differ among themselves.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace gpusnoop::cudadiff {

double median(std::vector<double> values); // 0 of none

// Of Hodges and Lehmann: the median of all differences between a value of one and a value of the other, and the
// interval that the test of Mann and Whitney gives it. Nothing is assumed of how the values are distributed, and
// outliers hardly count.
struct Change {
    double a = 0, b = 0;      // medians
    double difference = 0;    // b less a
    double low = 0, high = 0; // where it lies, with 95% certainty; the same as the difference where `enough` is false
    size_t a_count = 0, b_count = 0;
    bool enough = false; // values, to say so
    bool shown = false;  // that they differ

    // In parts of a; nullopt where that is nothing.
    std::optional<double> share() const { return of_a(difference); }
    std::optional<double> of_a(double difference_of_a) const
    {
        return a > 0 ? std::optional(std::max(difference_of_a / a, -1.0)) : std::nullopt; // none has less than nothing
    }
};

Change change_between(std::span<const double> a, std::span<const double> b);

} // namespace gpusnoop::cudadiff
