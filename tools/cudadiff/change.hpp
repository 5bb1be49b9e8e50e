// SPDX-License-Identifier: Apache-2.0
// The difference between two sequences of values, and whether it is significant.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace gpusnoop::cudadiff {

double median(std::vector<double> values); // 0 if there are no values

// Hodges-Lehmann estimate of a change: the median of all differences between a value of B and a value of A. The
// confidence interval is that of the Mann-Whitney test. The estimate and the interval assume no distribution, and are
// robust against outliers.
struct Change {
    double a = 0, b = 0;      // medians
    double difference = 0;    // B minus A
    double low = 0, high = 0; // 95% confidence interval; both equal `difference` unless `enough`
    size_t a_count = 0, b_count = 0;
    bool enough = false;      // there are enough values for a confidence interval
    bool significant = false; // the confidence interval does not contain 0

    // The difference relative to A; nullopt if A is 0.
    std::optional<double> share() const { return relative_to_a(difference); }
    std::optional<double> relative_to_a(double change) const
    {
        // Values are never negative, so a fall of more than 100% is impossible. But the difference of two values can
        // exceed the median of A.
        return a > 0 ? std::optional(std::max(change / a, -1.0)) : std::nullopt;
    }
};

Change change_between(std::span<const double> a, std::span<const double> b);

} // namespace gpusnoop::cudadiff
