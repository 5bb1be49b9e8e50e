// SPDX-License-Identifier: Apache-2.0
#include "attach/probes.hpp"

#include "attach/probe_table.hpp"

#include <algorithm>

namespace gpusnoop {

namespace {

probe_layer layer_of(Library library)
{
    return library == Library::runtime ? LAYER_RUNTIME : library == Library::hip ? LAYER_HIP : LAYER_DRIVER;
}

Probe make_probe(const TableEntry& entry, std::string_view suffix)
{
    Probe probe{std::string(entry.symbol.name) += suffix, entry.symbol.library, entry.runtimes, entry.layout.row};
    probe.row.kind = static_cast<uint8_t>(entry.kind);
    const bool launch = entry.kind >= KIND_LAUNCH && entry.kind <= KIND_LAUNCH_ITEMS;
    probe.row.counted_as = static_cast<uint8_t>(launch ? KIND_LAUNCH : entry.kind);
    probe.row.layer = static_cast<uint8_t>(layer_of(probe.library));
    probe.row.per_thread_stream = !suffix.empty();
    return probe;
}

bool is_wait(const probe_row& row)
{
    if (row.asynchronous || row.wait == WAIT_POLL || row.wait == WAIT_VALUE)
        return false;
    return row.kind == KIND_WAIT || (row.kind == KIND_COPY && row.direction != DIRECTION_SET) ||
           (row.kind == KIND_FREE && row.wait == WAIT_FREE);
}

} // namespace

Library library_of(uint8_t layer)
{
    return layer == LAYER_RUNTIME ? Library::runtime : layer == LAYER_HIP ? Library::hip : Library::driver;
}

std::vector<Probe> probes(Library library, std::span<const probe_kind> kinds)
{
    std::vector<Probe> selected;
    for (std::span<const TableEntry> entries :
         {call_entries(), memory_entries(), graph_entries(), nccl_entries(), hip_entries()}) {
        for (const TableEntry& entry : entries) {
            if (entry.symbol.library != library || std::ranges::find(kinds, entry.kind) == kinds.end())
                continue;
            selected.push_back(make_probe(entry, ""));
            if (!entry.symbol.variant.empty())
                selected.push_back(make_probe(entry, entry.symbol.variant));
        }
    }
    return selected;
}

std::vector<std::string_view> symbols_of_waits(std::span<const Probe> probes, bool driver, bool runtime)
{
    std::vector<std::string_view> symbols;
    for (const Probe& probe : probes) {
        const bool counted = probe.library == Library::hip || (probe.library == Library::driver ? driver : runtime);
        symbols.push_back(counted && is_wait(probe.row) ? std::string_view(probe.symbol) : std::string_view());
    }
    return symbols;
}

Runtime runtime_of(std::string_view soname)
{
    // "libcudart.so.12", or "libcudart-d0da41ae.so.11.0" if a Python wheel has renamed it.
    const size_t at = soname.find(".so.");
    if (at == std::string_view::npos)
        return any_runtime;
    std::string_view major = soname.substr(at + 4);
    major = major.substr(0, major.find('.'));
    if (soname.starts_with("libamdhip64"))
        return major == "5" ? hip5 : major == "6" || major == "7" ? hip6 : any_runtime;
    if (!soname.starts_with("libcudart"))
        return any_runtime;
    return major == "11" ? cudart11 : major == "12" ? cudart12 : major == "13" ? cudart13 : any_runtime;
}

bool applies(const Probe& probe, Runtime version)
{
    return probe.runtimes == any_runtime || (probe.runtimes & version) != 0;
}

} // namespace gpusnoop
