// SPDX-License-Identifier: Apache-2.0
// Helpers for the parts of a thread's time.
#pragma once

#include "tools/cudagap/columns.hpp"

#include <string>
#include <string_view>

namespace gpusnoop::cudagap {

// True if the part is reported. Without --interrupts, interrupt time counts toward the part that was interrupted.
inline bool is_shown(size_t part, const Settings& settings)
{
    return settings.interrupts || !is_interrupted(static_cast<uint32_t>(part));
}

// Lists up to four parts that are at least 1%, largest first: "PIPE 71%, RUNQ 20%, CPU 8%".
std::string largest_parts(const TimeParts& parts);

} // namespace gpusnoop::cudagap
