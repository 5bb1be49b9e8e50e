// SPDX-License-Identifier: Apache-2.0
// Names of what goes in and out of GPU drivers by number. From the tables of data/, whose README.md has their sources.
#pragma once

#include "bpf/shared/ioctl.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// All names are of A-Z, 0-9 and _, and last as long as the program; "" for numbers that no table has.

// By the driver's own number: that of _IOC_NR where commands are encoded. NV_ESC_RM_CONTROL, UVM_FREE.
std::string_view command_name(command_space space, uint32_t number);

// Of NVIDIA's resource manager, by what stands in the struct of a call.
std::string_view control_name(uint32_t command);        // NV2080_CTRL_CMD_FB_GET_INFO_V2
std::string_view class_name(uint32_t class_number);     // TURING_CHANNEL_GPFIFO_A
std::string_view heap_function_name(uint32_t function); // NVOS32_FUNCTION_ALLOC_SIZE
std::string_view nv_status_name(uint32_t status);       // NV_ERR_NO_MEMORY

// What an object of a class is for.
enum class ClassKind : uint8_t {
    other, // and unknown classes
    client,
    device,
    memory,
    virtual_memory, // addresses without memory
    address_space,
    channel,
    channel_group, // and what channels of a group share
    compute,
    copy,
    graphics,
    video,
    event,
    profiler, // and debuggers
    display,
    doorbell,
};

ClassKind class_kind(uint32_t class_number);

// Work reaches the GPU through objects of such a kind: a channel, or an engine that hangs on one.
bool submits_work(ClassKind kind);

// An error that NVIDIA's driver reports of a GPU.
struct Xid {
    std::string_view name;    // the driver's mnemonic
    std::string_view meaning; // in plain words, without a full stop
    std::string_view action;  // what NVIDIA's catalog says to do first; "" where it says nothing
};

std::optional<Xid> xid(uint32_t number);

// A name without what all of its kind begin with, for columns of tables: RM_CONTROL, FB_GET_INFO_V2, NO_MEMORY. UVM_
// stays, and any name that is of no such kind.
std::string short_name(std::string_view name);

} // namespace gpusnoop
