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

std::span<const TableEntry> probe_table();

} // namespace gpusnoop
