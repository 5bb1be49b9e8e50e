// SPDX-License-Identifier: Apache-2.0
// Names for the numbers in GPU driver calls: commands, object classes, statuses and Xids. From the tables in data/; its
// README.md has their sources.
#pragma once

#include "bpf/shared/ioctl.h"
#include "gpu/command_layouts.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// All names consist of A-Z, 0-9 and _, and stay valid while the program runs. Unknown numbers yield "".

// number: the driver's own, which is _IOC_NR of encoded commands. "NV_ESC_RM_CONTROL", "UVM_FREE".
std::string_view command_name(command_space space, uint32_t number);

// Names of NVIDIA's resource manager, for numbers in the struct of a call.
std::string_view control_name(uint32_t command);        // NV2080_CTRL_CMD_FB_GET_INFO_V2
std::string_view class_name(uint32_t class_number);     // TURING_CHANNEL_GPFIFO_A
std::string_view heap_function_name(uint32_t function); // NVOS32_FUNCTION_ALLOC_SIZE
std::string_view nv_status_name(uint32_t status);       // NV_ERR_NO_MEMORY

// The purpose of a class of objects.
enum class ClassKind : uint8_t {
    other, // and unknown classes
    client,
    device,
    memory,
    virtual_memory, // addresses without memory
    address_space,
    channel,
    channel_group, // and objects that its channels share
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

// True if work reaches the GPU through objects of this kind: channels, and the engines attached to them.
bool submits_work(ClassKind kind);

// An error that NVIDIA's driver reports of a GPU.
struct Xid {
    std::string_view name;    // the driver's mnemonic
    std::string_view meaning; // in plain words, without a full stop
    std::string_view action;  // the first action in NVIDIA's catalog; "" if there is none
};

std::optional<Xid> xid(uint32_t number);

// Shortens a name for table columns by the common prefix of its kind: RM_CONTROL, FB_GET_INFO_V2, NO_MEMORY. UVM_ and
// all other prefixes are kept.
std::string short_name(std::string_view name);

// Texts about a driver call: its command, the class of its object, and its outcome.

// "RM_CONTROL FB_GET_INFO_V2", "open". Unknown numbers are shown in hex.
std::string command_text(uint8_t kind, uint8_t node, uint64_t subject, uint8_t flags);
inline std::string command_text(const call_key& key)
{
    return command_text(key.kind, key.driver.node, key.subject, key.flags);
}

// The class of the object that a control command addresses or an allocation creates; nullopt for other calls.
std::optional<uint32_t> object_class(const call_key& key);
std::string class_text(std::optional<uint32_t> number);

// "ok", "NO_MEMORY", "EINVAL"; "?" if the driver's status could not be read.
std::string outcome_text(uint8_t outcome, int32_t result);

// Rows of the tables that scripts/driver-tables generates from data/. Tables of rows that start with a number are
// sorted by it.
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

// Valid from `since` up to, but not including, `until`.
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
    uint32_t number; // of the command; applies to each of its layouts
    uint32_t subject;
    size_layout layout;
};

} // namespace gpusnoop
