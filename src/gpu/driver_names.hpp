// SPDX-License-Identifier: Apache-2.0
// Names for the numbers in GPU driver calls: commands, object classes, statuses and Xids. The names are generated from
// the tables in data/. Their sources are listed in data/README.md.
#pragma once

#include "bpf/shared/ioctl.h"
#include "gpu/command_layouts.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

// All names consist of A-Z, 0-9 and _, and are static strings. An unknown number has the name "".

// Returns a name such as "NV_ESC_RM_CONTROL" or "UVM_FREE". number: the command's number within its driver; if requests
// are encoded by _IOC(), the number is _IOC_NR(request).
std::string_view command_name(command_space space, uint32_t number);

// Names from NVIDIA's resource manager. The number is a field of the struct that an ioctl passes to the driver. Each
// line ends with an example.
std::string_view control_name(uint32_t command);        // NV2080_CTRL_CMD_FB_GET_INFO_V2
std::string_view class_name(uint32_t class_number);     // TURING_CHANNEL_GPFIFO_A
std::string_view heap_function_name(uint32_t function); // NVOS32_FUNCTION_ALLOC_SIZE
std::string_view nv_status_name(uint32_t status);       // NV_ERR_NO_MEMORY

// Purpose of an object class.
enum class ClassKind : uint8_t {
    other, // includes unknown classes
    client,
    device,
    memory,
    virtual_memory, // reserved address range without backing memory
    address_space,
    channel,
    channel_group, // includes objects that the channels of a group share
    compute,
    copy,
    graphics,
    video,
    event,
    profiler, // includes debuggers
    display,
    doorbell,
};

ClassKind class_kind(uint32_t class_number);

// True if programs submit work through objects of this kind: channels, and the engines attached to them.
bool submits_work(ClassKind kind);

// Description of an error that NVIDIA's driver reports about a GPU.
struct Xid {
    std::string_view name;    // the driver's mnemonic
    std::string_view meaning; // in plain words, without a full stop
    std::string_view action;  // the first action that NVIDIA's Xid catalog recommends; "": none
};

std::optional<Xid> xid(uint32_t number);

// Shortens a name for table columns: removes the prefix that all commands, all controls or all statuses share. Examples
// of results: RM_CONTROL, FB_GET_INFO_V2, NO_MEMORY. Keeps other prefixes, such as UVM_.
std::string short_name(std::string_view name);

// Texts for a driver call: its command, the class of its object, and its outcome.

// Returns a command such as "RM_CONTROL FB_GET_INFO_V2" or "open". Unknown numbers are shown in hex.
std::string command_text(uint8_t kind, uint8_t node, uint64_t subject, uint8_t flags);
inline std::string command_text(const call_key& key)
{
    return command_text(key.kind, key.driver.node, key.subject, key.flags);
}

// Returns the class of the object that a control command addresses or an allocation creates; nullopt for other calls.
std::optional<uint32_t> object_class(const call_key& key);
std::string class_text(std::optional<uint32_t> number);

// Returns "ok", or an error such as "NO_MEMORY" or "EINVAL", or "?" if the driver's status could not be read.
std::string outcome_text(uint8_t outcome, int32_t result);

// Rows of the tables that scripts/driver-tables generates from data/. A table whose rows begin with a number is sorted
// by that number.
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

// A layout that is valid from driver version `since` up to, but not including, `until`.
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
    uint32_t number; // number of a command; the row applies to all of its layouts
    uint32_t subject;
    size_layout layout;
};

} // namespace gpusnoop
