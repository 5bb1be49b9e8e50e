// SPDX-License-Identifier: Apache-2.0
// Rows of the tables that scripts/driver-tables makes of data/; those with a number in front are sorted by it.
#pragma once

#include "gpu/command_layouts.hpp"
#include "gpu/driver_names.hpp"

namespace gpusnoop {

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
