// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/rank_alignment.hpp"

#include <algorithm>
#include <compare>
#include <vector>

namespace gpusnoop {
namespace {

constexpr int64_t shift_max = 128; // calls that a rank may be ahead when it is first seen
constexpr int64_t waits_to_align = 4;
constexpr double clearly = 0.2, mostly_possible = 0.5; // a wait may be for another stream

} // namespace

std::optional<int64_t> shift_between(std::span<const Pattern> one, std::span<const Pattern> other)
{
    const auto n = static_cast<int64_t>(one.size()), m = static_cast<int64_t>(other.size());
    const int64_t enough = (std::min(n, m) + 1) / 2;
    struct Fit {
        double unlike, impossible; // shares
        int64_t shift;
        auto operator<=>(const Fit&) const = default;
    };
    std::vector<Fit> fits;
    for (int64_t shift = -shift_max; shift <= shift_max; shift++) {
        int64_t both = 0, unlike = 0, told = 0, impossible = 0;
        for (int64_t i = std::max<int64_t>(0, -shift); i < n && i + shift < m; i++) {
            const Pattern &a = one[static_cast<size_t>(i)], &b = other[static_cast<size_t>(i + shift)];
            both++;
            unlike += a.signature != b.signature;
            told += a.done_ns != Pattern::never || b.done_ns != Pattern::never;
            impossible += b.ns > a.done_ns || a.ns > b.done_ns;
        }
        if (both < enough || told < waits_to_align)
            continue;
        fits.push_back({static_cast<double>(unlike) / static_cast<double>(both),
                        static_cast<double>(impossible) / static_cast<double>(told), shift});
    }
    if (fits.size() < 2)
        return std::nullopt; // there is nothing to hold it against
    const Fit best = *std::ranges::min_element(fits);
    const auto is_as_good = [&best](const Fit& fit) {
        return fit.unlike <= best.unlike + clearly && fit.impossible <= best.impossible + clearly;
    };
    if (best.impossible > mostly_possible || std::ranges::count_if(fits, is_as_good) > 1)
        return std::nullopt;
    return best.shift;
}

} // namespace gpusnoop
