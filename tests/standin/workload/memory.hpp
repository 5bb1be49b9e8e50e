// SPDX-License-Identifier: Apache-2.0
// Named memory of scripts, and default memory for steps that name none.
#pragma once

#include "session.hpp"

#include <optional>

namespace workload {

// Location of a copy's source or destination, if the function's name or arguments determine it. unknown: managed
// memory, whose location does not depend on its address. symbol: a device variable, given by the address of its host
// shadow.
enum class Side { host, device, array, symbol, unknown };

struct Memory {
    std::string kind{};       // host, registered, pinned, managed, device, array, vmm
    Side side = Side::device; // location of the memory
    void* address = nullptr;  // for an array: its handle
    size_t offset = 0;        // offset in bytes at which a copy starts
    size_t bytes = 0;
    std::string holding{}; // as in the truth; empty: plain host memory
    std::string free_by{}; // the function that frees it; free or munmap if no API allocated it
    bool owned = false;    // released with its context
    Place place{};
    void* physical = nullptr; // handle of the physical memory mapped here, which is freed with this memory
    size_t mapped_bytes = 0;  // for a mapping: size of the physical memory

    char* pointer() const { return static_cast<char*>(address) + (side == Side::array ? 0 : offset); }
};

void remember(const std::string& name, const Memory&);
Memory pop_memory(const Step&, const std::string& name);   // the last remembered memory with that name
void forget_memory(const Place&);                          // forgets the memory that is released with this context
void forget_mappings(const void* start, size_t bytes);     // forgets the mappings that an unmap call removed
void freed(const std::string& name, const Memory&);        // the name can still be used to free it again
Memory freed_before(const Step&, const std::string& name); // the last freed memory that had this name

// Returns the memory of the option key=NAME[+OFFSET]. Without that option, returns a static host buffer, or the default
// device memory or array of the current context, which is allocated on first use.
Memory memory(const Step&, const std::string& key, Side fallback);

// In alloc.cpp: a page that neither this process nor others can read.
const void* unreadable_page();

// In alloc.cpp: allocates memory by the default function, and records the call in the truth.
Memory allocate_default(Side, size_t bytes);

} // namespace workload
