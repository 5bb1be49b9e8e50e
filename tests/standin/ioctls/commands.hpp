// SPDX-License-Identifier: Apache-2.0
// The commands that scripts know by name: numbers, sizes and offsets of the drivers' own structs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ioctls {

constexpr int none = -1;

struct Command {
    const char* name;
    const char* device; // that takes it
    uint32_t request;   // with the size below
    unsigned size;      // of its struct
    int status = none;  // offsets in it; NV_STATUS
    int subject = none; // command of a control, class of an allocation, function of a heap call
    int bytes = none;   // what it is about, u64
    bool limit = false; // one less than that
    int parameters = none, parameters_size = none; // of a pointer to a struct that goes by the subject, and of its size
    bool addresses = false;                        // the bytes are a range of addresses, not memory
};

const Command* find_command(const std::string& name);

uint32_t resized(uint32_t request, unsigned size); // with another size in it; UVM's have none

// The same command with a struct of another size, which other versions of the driver have.
Command of_size(Command, unsigned size);

// Where the heap's functions and the parameters of memory classes say how much.
int heap_bytes(uint32_t function);
int memory_bytes(uint32_t class_number); // offset in the parameters

} // namespace ioctls
