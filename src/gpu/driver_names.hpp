// SPDX-License-Identifier: Apache-2.0
// Names of what goes in and out of GPU drivers by number. From the tables of data/, whose README.md has their sources.
#pragma once

#include "bpf/shared/ioctl.h"
#include "gpu/command_layouts.hpp"

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

// A driver call in words: which it was, what it was about, what came of it.

// Which call it was: "RM_CONTROL FB_GET_INFO_V2", "open". Numbers that nobody knows are shown as such, in hex.
std::string command_text(uint8_t kind, uint8_t node, uint64_t subject, uint8_t flags);
inline std::string command_text(const call_key& key)
{
    return command_text(key.kind, key.driver.node, key.subject, key.flags);
}

// The class of the object that a control is sent to, or an allocation makes; none of other calls.
std::optional<uint32_t> object_class(const call_key& key);
std::string class_text(std::optional<uint32_t> number);

// "ok", "NO_MEMORY", "EINVAL"; "?" where the driver's answer could not be read.
std::string outcome_text(uint8_t outcome, int32_t result);

// Rows of the tables that scripts/driver-tables makes of data/; those with a number in front are sorted by it.
struct NameRow {
    uint32_t number;
    std::string_view name;
};

struct ClassRow {
    uint32_t number;
    std::string_view name;
    ClassKind kind;
};

struct XidRow {
    uint32_t number;
    Xid xid;
};

// Holds from `since` up to, but without, `until`.
struct LayoutRow {
    DriverVersion since;
    DriverVersion until;
    command_space space;
    uint32_t number;
    uint32_t request;
    command_layout layout;
};

struct SizeRow {
    DriverVersion since;
    DriverVersion until;
    command_space space;
    uint32_t number; // goes with each of the command's layouts
    uint32_t subject;
    size_layout layout;
};

} // namespace gpusnoop
