// SPDX-License-Identifier: Apache-2.0
// Collectives and ranks as sentences have them.
#pragma once

#include "tools/ncclwait/collectives.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

// "rank 5", "ranks 0-3,7"
std::string ranks_in_words(std::span<const unsigned> ranks);

// "AllReduce of 4.0M (collective 61)", as far as that is known.
std::string collective_in_words(const Collectives::Of& of, const Collectives::Came& came);

// "AllReduce of 1000 float32, sum": all that has to be the same in all ranks.
std::string meaning_in_words(const Collectives::Came& came);

// "12.3 s"
std::string seconds_in_words(uint64_t ns);

} // namespace gpusnoop
