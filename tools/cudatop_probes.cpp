// SPDX-License-Identifier: Apache-2.0
#include "cudatop_probes.hpp"

#include "probe_kinds.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace gpusnoop::cudatop {

// The driver's functions: what the runtime does ends there. Of the runtime, what gives kernels their names.
std::vector<Probe> probes_of_all(bool cheap)
{
    std::set<probe_kind> kinds;
    auto add = [&](std::span<const probe_kind> more) { kinds.insert(more.begin(), more.end()); };
    add(launch_kinds);
    add(copy_kinds);
    add(batch_kinds);
    add(note_kinds);
    if (!cheap)
        for (std::span<const probe_kind> more : {std::span<const probe_kind>(wait_kinds),
                                                 {alloc_kinds},
                                                 {free_kinds},
                                                 {handle_kinds},
                                                 {gone_kinds},
                                                 {memory_kinds},
                                                 {lookup_kinds},
                                                 {capture_kinds},
                                                 {device_kinds},
                                                 {graph_kinds},
                                                 {event_kinds}})
            add(more);
    std::vector<Probe> all;
    append_probes(all, Library::driver, std::vector<probe_kind>(kinds.begin(), kinds.end()));
    append_probes(all, Library::runtime, launch_kinds);
    append_probes(all, Library::runtime, note_kinds);
    if (!cheap) {
        append_probes(all, Library::runtime, lookup_kinds);
        append_probes(all, Library::runtime, device_kinds);
    }
    return all;
}

std::vector<Hook> hooks_of(std::span<const Probe> probes, bool cheap, bool latency)
{
    auto rows = [&](Library library, std::span<const probe_kind> kinds) {
        std::vector<unsigned> found = probes_of(probes, kinds);
        std::erase_if(found, [&](unsigned i) { return probes[i].library != library; });
        return found;
    };
    auto driver_rows = [&](std::span<const probe_kind> kinds) { return rows(Library::driver, kinds); };
    std::vector<Hook> all{{"launch", latency, driver_rows(launch_kinds), true},
                          {"mark", false, rows(Library::runtime, launch_kinds), false},
                          {"note", false, probes_of(probes, note_kinds), true},
                          {"copy", latency, driver_rows(copy_kinds), true},
                          {"batch", latency, driver_rows(batch_kinds), true}};
    if (cheap)
        return all;
    Hook state{"state", true, probes_of(probes, lookup_kinds), true};
    std::ranges::copy(probes_of(probes, device_kinds), std::back_inserter(state.probes));
    Hook follow{"follow", true, driver_rows(capture_kinds), true};
    std::ranges::copy(driver_rows(graph_kinds), std::back_inserter(follow.probes));
    Hook memory{"memory", true, driver_rows(memory_kinds), true};
    std::erase_if(memory.probes, [&](unsigned i) { return !tells_memory(probes[i].row); });
    Hook wait{"wait", true, driver_rows(wait_kinds), true};
    std::erase_if(wait.probes, [&](unsigned i) { return !waits(probes[i].row); });
    all.insert(all.end(), {state,
                           follow,
                           {"event", false, driver_rows(event_kinds), true},
                           memory,
                           wait,
                           {"alloc", true, driver_rows(alloc_kinds), true},
                           {"free", true, driver_rows(free_kinds), true},
                           {"handle", true, driver_rows(handle_kinds), true},
                           {"gone", true, driver_rows(gone_kinds), true}});
    return all;
}

} // namespace gpusnoop::cudatop
