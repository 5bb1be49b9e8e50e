// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/shares.hpp"

#include <algorithm>
#include <numeric>

namespace gpusnoop {

std::vector<uint64_t> divided(uint64_t amount, std::span<const uint64_t> weights)
{
    std::vector<uint64_t> parts(weights.size());
    uint128 sum = 0;
    for (const uint64_t weight : weights)
        sum += weight;
    if (parts.empty())
        return parts;
    if (!sum)
        return divided(amount, std::vector<uint64_t>(weights.size(), 1));
    // The sum of 2^16 weights needs 80 bits: a remainder is compared, and never multiplied.
    std::vector<uint128> left(weights.size());
    uint64_t given = 0;
    for (size_t i = 0; i < weights.size(); i++) {
        const uint128 product = uint128{amount} * weights[i];
        parts[i] = static_cast<uint64_t>(product / sum);
        left[i] = product % sum;
        given += parts[i];
    }
    std::vector<size_t> order(weights.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return left[a] > left[b]; });
    for (size_t i = 0; given < amount; i++, given++)
        parts[order[i]]++;
    return parts;
}

} // namespace gpusnoop
