// SPDX-License-Identifier: Apache-2.0
// The memory that a script names, and what stands in where it names none.
#pragma once

#include "session.hpp"

#include <optional>

namespace workload {

// Where the bytes of a copy are, as far as a function's name or arguments say. Nobody can tell from the address of
// managed memory. A symbol is a variable of the device's code, given as the address of its shadow.
enum class Side { host, device, array, symbol, unknown };

struct Memory {
    std::string what{};       // host, registered, pinned, managed, device, array, vmm
    Side side = Side::device; // where it is
    void* address = nullptr;  // of an array: its handle
    size_t offset = 0;        // only a copy's
    size_t bytes = 0;
    std::string holding{}; // as the truth says it; empty: it is just the host's
    std::string free_by{}; // the fitting function; of memory that is not the API's: free, munmap
    bool owned = false;    // dies with its context
    Place place{};
    void* physical = nullptr; // what is mapped here, and goes with it
    size_t of = 0;            // of a mapping: bytes of what is mapped

    char* pointer() const { return static_cast<char*>(address) + (side == Side::array ? 0 : offset); }
};

void remember(const std::string& name, const Memory&);
Memory take(const Step&, const std::string& name);         // the one of that name remembered last
void forget_memory(const Place&);                          // its context is gone
void forget_mappings(const void* start, size_t bytes);     // they were taken away
void freed(const std::string& name, const Memory&);        // the name is still good for freeing it once more
Memory freed_before(const Step&, const std::string& name); // last

// key=NAME[+OFFSET]; without it a static buffer of the host, or the device memory or the array that each place has for
// this, allocated when it is first needed.
Memory memory(const Step&, const std::string& key, Side fallback);

// In alloc.cpp: reading it fails, in this process and from outside.
const void* unreadable_page();

// In alloc.cpp: allocates with the default function; the truth tells of it as of any allocation.
Memory allocate_default(Side, size_t bytes);

} // namespace workload
