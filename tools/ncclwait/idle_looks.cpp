// SPDX-License-Identifier: Apache-2.0
#include "tools/ncclwait/idle_looks.hpp"

#include <algorithm>

namespace gpusnoop {

bool IdleLooks::is_due(uint64_t communicator, uint64_t since_ns, bool waits, uint64_t now_ns)
{
    Silence& silence = silences_[communicator];
    if (silence.since_ns != since_ns || waits)
        silence = {.since_ns = since_ns};
    silence.asked = true;
    if (now_ns < silence.until_ns)
        return false;
    if (silence.looked++ < looks)
        return true;
    silence.looked = 0;
    silence.pause_ns = std::clamp(silence.pause_ns * 2, first_pause_ns, longest_pause_ns);
    silence.until_ns = now_ns + silence.pause_ns;
    return false;
}

void IdleLooks::end_round()
{
    std::erase_if(silences_, [](const auto& item) { return !item.second.asked; });
    for (auto& [communicator, silence] : silences_)
        silence.asked = false;
}

} // namespace gpusnoop
