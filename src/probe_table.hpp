// SPDX-License-Identifier: Apache-2.0
// What a row of the probe table says.
#pragma once

#include "probe_layout.hpp"
#include "probes.hpp"

#include <span>

namespace gpusnoop {

// The same function for per-thread default streams is exported, too: as NAME_ptsz, or NAME_ptds.
enum Variants : uint8_t { single, ptsz, ptds };

struct TableEntry {
    std::string_view symbol;
    Variants variants;
    Library library;
    uint8_t runtimes;
    probe_kind kind;
    Layout layout;
};

inline constexpr auto driver = Library::driver;
inline constexpr auto runtime = Library::runtime;

// The table, in parts: launches, copies and waits, with what gives them names and places; memory; graphs.
std::span<const TableEntry> call_entries();
std::span<const TableEntry> memory_entries();
std::span<const TableEntry> graph_entries();

} // namespace gpusnoop
