// SPDX-License-Identifier: Apache-2.0
// Named commands of scripts: request numbers, sizes and offsets in the drivers' structures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ioctls {

constexpr int none = -1;

struct Command {
    const char* name;
    const char* device; // the device file it is called on
    uint32_t request;   // includes the size below
    unsigned size;      // of its structure
    // Offsets of fields in the structure.
    int status = none;  // NV_STATUS
    int subject = none; // command of a control, class of an allocation, function of a heap call
    int bytes = none;   // a size (u64)
    bool limit = false; // the field at `bytes` holds the size - 1
    int parameters = none, parameters_size = none; // pointer to parameters, and their size
    bool addresses = false;                        // the size is the size of an address range, not of memory
};

const Command* find_command(const std::string& name);

uint32_t resized(uint32_t request, unsigned size); // replaces the size in the request; UVM requests contain none

// Returns the command with a structure of another size, as in other versions of the driver.
Command resized(Command, unsigned size);

// Offsets of the size: in a heap call's structure, and in the parameters of memory classes.
int heap_bytes(uint32_t function);
int memory_bytes(uint32_t class_number);

} // namespace ioctls
