// SPDX-License-Identifier: Apache-2.0
#include "run/duty_cycle.hpp"

#include <algorithm>

namespace gpusnoop {
namespace {

constexpr double margin = 0.9;        // what comes and goes is not the same from one window to the next
constexpr double least_share = 0.001; // or there is nothing to tell from
constexpr double steepest = 4;        // from one time to the next

} // namespace

void DutyCycle::add(double sampled, double others, double share_of_time)
{
    const double rest = std::max(1 - sampled - others, 0.01);
    const double cost = sampled / rest, fixed = others / rest;
    if (is_whole() && cost + fixed <= ceiling_)
        return;
    const double allowed = std::max(ceiling_ * margin - fixed, 0.0);
    const double always = cost / std::max(share_of_time, least_share); // what they would cost without windows
    const double wanted = always > 0 ? allowed / always : 2 / margin;  // it does nothing
    if (is_whole())
        share_ = wanted;
    else
        share_ = std::clamp(wanted, share_ / steepest, share_ * steepest);
    share_ = share_ >= 1 && wanted > 1 / margin ? 1 : std::clamp(share_, least_share, margin);
}

} // namespace gpusnoop
