// SPDX-License-Identifier: Apache-2.0
#include "tools/cudadiff/change.hpp"

#include <algorithm>
#include <cmath>

namespace gpusnoop::cudadiff {

double median(std::vector<double> values)
{
    if (values.empty())
        return 0;
    const size_t half = values.size() / 2;
    std::ranges::sort(values);
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Change change_between(std::span<const double> a, std::span<const double> b)
{
    constexpr size_t min_count = 4; // values per side; with fewer, no difference can be significant at 95%
    constexpr double two_sided_95 = 1.96;
    Change change{.a = median({a.begin(), a.end()}),
                  .b = median({b.begin(), b.end()}),
                  .a_count = a.size(),
                  .b_count = b.size(),
                  .enough = a.size() >= min_count && b.size() >= min_count};
    std::vector<double> differences;
    for (const double one : a)
        for (const double other : b)
            differences.push_back(other - one);
    change.difference = change.low = change.high = median(differences);
    if (!change.enough)
        return change;
    std::ranges::sort(differences);
    const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
    const double rank = n * m / 2 - two_sided_95 * std::sqrt(n * m * (n + m + 1) / 12);
    const auto from_end = static_cast<size_t>(std::max(std::floor(rank), 1.0)) - 1;
    change.low = differences[from_end];
    change.high = differences[differences.size() - 1 - from_end];
    change.significant = change.low > 0 || change.high < 0;
    return change;
}

} // namespace gpusnoop::cudadiff
