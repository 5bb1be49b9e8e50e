// SPDX-License-Identifier: Apache-2.0
// What the parts of a thread's time are called.
#pragma once

#include "tools/cudagap/columns.hpp"

#include <string>
#include <string_view>

namespace gpusnoop::cudagap {

// Those of a run that does not ask for interrupts have them in what they come in.
inline bool is_told(size_t part, const Settings& settings)
{
    return settings.interrupts || !is_interrupted(static_cast<uint32_t>(part));
}

// The largest that are 1% of all or more: "PIPE 71%, RUNQ 20%, CPU 8%".
std::string largest_parts(const TimeParts& parts);

} // namespace gpusnoop::cudagap
