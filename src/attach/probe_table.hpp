// SPDX-License-Identifier: Apache-2.0
// What a row of the probe table says: a function, what kind of call it is, where its arguments are.
#pragma once

#include "attach/probe_layout.hpp"
#include "attach/probes.hpp"

#include <span>
#include <stdexcept>
#include <string_view>

namespace gpusnoop {

// "cuCtxSynchronize", or "cuMemcpy[_ptds]" where the same function for per-thread default streams is exported, too, as
// NAME_ptds, NAME_ptsz or, of HIP, NAME_spt. A mistake does not compile.
struct SymbolText {
    std::string_view name;
    std::string_view variant; // what the other function's name has behind it; empty: there is none
    Library library;

    consteval SymbolText(const char* text) // NOLINT: implicit, for the table
        : name(text), library(name.starts_with("cuda") || name.starts_with("__cuda") ? Library::runtime
                              : name.starts_with("nccl")                             ? Library::nccl
                              : is_hip()                                             ? Library::hip
                                                                                     : Library::driver)
    {
        const size_t bracket = name.find('[');
        if (bracket != std::string_view::npos) {
            variant = name.substr(bracket);
            name = name.substr(0, bracket);
            if (variant != "[_ptsz]" && variant != "[_ptds]" && variant != "[_spt]")
                throw std::logic_error("no such variant");
            variant = variant.substr(1, variant.size() - 2);
        }
        if (library == Library::driver && !(name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z'))
            throw std::logic_error("a function of no library that is known");
    }

private:
    // HIP has functions of C++, too.
    consteval bool is_hip() const
    {
        return name.starts_with("hip") || name.starts_with("__hip") || name.starts_with("_Z24hip");
    }
};

struct TableEntry {
    SymbolText symbol;
    probe_kind kind;
    Layout layout;
    uint8_t runtimes = any_runtime; // bits of Runtime
};

// The table, in parts: launches, copies and waits, with what gives them names and places; memory; graphs; collectives;
// all of HIP.
std::span<const TableEntry> call_entries();
std::span<const TableEntry> memory_entries();
std::span<const TableEntry> graph_entries();
std::span<const TableEntry> nccl_entries();
std::span<const TableEntry> hip_entries();

} // namespace gpusnoop
