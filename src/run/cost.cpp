// SPDX-License-Identifier: Apache-2.0
#include "run/cost.hpp"

#include "base/bpf_map.hpp"
#include "base/clock.hpp"

#include <algorithm>

namespace gpusnoop {

Cost::Share Cost::since_last(double seconds)
{
    std::array<uint64_t, HITS> hits{};
    std::ranges::copy(cpu_sums(hits_fd_, HITS), hits.begin());
    const auto entries = static_cast<double>(hits[HIT_ENTRY] - seen_[HIT_ENTRY]);
    const auto returns = static_cast<double>(hits[HIT_RETURN] - seen_[HIT_RETURN]);
    const uint64_t own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const double percent_ns = seconds * 1e7;
    Share share;
    if (seconds > 0) {
        share.hits_per_second = (entries + returns) / seconds;
        if (const std::optional<ProbeCost>& one = of_one_.cost())
            share.probes_percent = (entries * one->entry_ns + returns * one->return_ns) / percent_ns;
        if (own_ns_)
            share.own_percent = static_cast<double>(own_ns - own_ns_) / percent_ns;
    }
    seen_ = hits;
    own_ns_ = own_ns;
    return share;
}

} // namespace gpusnoop
