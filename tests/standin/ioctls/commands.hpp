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
    const char* device; // the device file that accepts the command
    uint32_t request;   // includes the size below
    unsigned size;      // size of the command's structure in bytes
    // Offsets of fields in the structure.
    int status = none;  // NV_STATUS
    int subject = none; // command of RM_CONTROL, class of RM_ALLOC, function of RM_VID_HEAP_CONTROL
    int bytes = none;   // a size (u64)
    bool limit = false; // the field at `bytes` holds the size - 1
    int parameters = none, parameters_size = none; // pointer to parameters, and their size
    bool addresses = false;                        // `bytes` is the size of an address range, not of memory
};

const Command* find_command(const std::string& name);

// Returns the command with a structure of another size, as in other versions of the driver.
Command resized(Command, unsigned size);

// Offset of the size field: in the structure of RM_VID_HEAP_CONTROL with this function; in the parameters of this class
// of memory.
int heap_bytes(uint32_t function);
int memory_bytes(uint32_t class_number);

} // namespace ioctls
