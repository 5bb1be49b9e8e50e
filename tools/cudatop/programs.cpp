// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/programs.hpp"

namespace gpusnoop::cudatop {

// Calls are counted at the driver API, because every runtime call makes driver API calls. Runtime functions are probed
// only to learn kernel names.
std::vector<Program> programs(bool cheap, bool latency)
{
    using enum Layers;
    std::vector<Program> all{
        {"launch", driver, launch_calls, latency, "launches are unknown", true, !latency},
        {"often", driver, often_launched, latency, slower_launches, true, !latency, "launch"},
        {"mark", runtime, launch_calls, false, "no kernel names are learned from launches", false},
        {"note", both, note_calls, false, "no kernel names are learned from registrations"},
        {"copy", driver, copy_calls, latency, "copies are unknown", true, !latency},
        {"batch", driver, batch_calls, latency, "copies in batches are not counted", true, !latency},
    };
    if (cheap)
        return all;
    constexpr std::string_view no_state = "devices are unknown, and no kernel names are learned from lookups by name";
    constexpr std::string_view no_graphs = "kernels in graphs are unknown, and captured kernels count as launched";
    constexpr std::string_view no_memory = "memory is unknown";
    all.insert(all.end(), {
                              {"state", both, lookup_calls, true, no_state},
                              {"state", both, device_calls, true, no_state},
                              {"follow", driver, capture_calls, true, no_graphs},
                              {"follow", driver, graph_calls, true, no_graphs},
                              {"event", driver, event_calls, false, no_graphs},
                              {"life", driver, stream_calls, true, stale_streams},
                              {"memory", driver, memory_calls, true,
                               "the direction of a copy is unknown if it follows only from the addresses"},
                              {"wait", driver, wait_calls, true, "waits are unknown"},
                              {"alloc", driver, alloc_calls, true, no_memory},
                              {"free", driver, free_calls, true, no_memory},
                              {"handle", driver, handle_calls, true, no_memory},
                              {"release", driver, context_ends, true, no_memory},
                          });
    return all;
}

} // namespace gpusnoop::cudatop
