// SPDX-License-Identifier: Apache-2.0
// An amount, divided so that the parts add up to it exactly: time and money are shared out in whole units.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gpusnoop {

__extension__ typedef unsigned __int128 uint128; // of products: ISO C++ has none so wide

// In proportion to the weights; what is left of whole units goes to the largest remainders, the first of equal ones
// first. Without any weight, in equal parts. Empty: there is nobody to share.
std::vector<uint64_t> divided(uint64_t amount, std::span<const uint64_t> weights);

} // namespace gpusnoop
