// SPDX-License-Identifier: Apache-2.0
// Row of the probe table: a function, its kind of call, and the layout of its arguments.
#pragma once

#include "attach/probe_layout.hpp"
#include "attach/probes.hpp"

#include <span>
#include <stdexcept>
#include <string_view>

namespace gpusnoop {

// Symbol of a function, such as "cuCtxSynchronize". A suffix in brackets, as in "cuMemcpy[_ptds]", means that the
// library also exports a variant with this suffix for per-thread default streams. Suffixes are _ptds and _ptsz, and
// _spt in HIP. Invalid text does not compile.
struct SymbolText {
    std::string_view name;
    std::string_view variant; // suffix of the per-thread variant; empty if there is none
    Library library;

    consteval SymbolText(const char* text) // NOLINT: implicit, so that tables can contain strings
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
                throw std::logic_error("unknown suffix");
            variant = variant.substr(1, variant.size() - 2);
        }
        if (library == Library::driver && !(name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z'))
            throw std::logic_error("the function name matches no known library");
    }

private:
    // HIP also exports C++ functions.
    consteval bool is_hip() const
    {
        return name.starts_with("hip") || name.starts_with("__hip") || name.starts_with("_Z24hip");
    }
};

struct TableEntry {
    SymbolText symbol;
    probe_kind kind;
    Layout layout;
    uint8_t runtimes = any_runtime; // bits of Runtime: versions to which the row applies
};

// Parts of the table. call_entries() has launches, copies, waits, and the calls that reveal kernel names and the
// current device.
std::span<const TableEntry> call_entries();
std::span<const TableEntry> memory_entries();
std::span<const TableEntry> graph_entries();
std::span<const TableEntry> nccl_entries();
std::span<const TableEntry> hip_entries();

} // namespace gpusnoop
