// SPDX-License-Identifier: Apache-2.0
// Where the probe of a function sits that only looks another one up. On the one in front it would be single-stepped;
// the one behind begins with an instruction that is emulated, has the same arguments, and returns to the same caller.
#pragma once

#include "attach/placement.hpp"
#include "code/dispatch_tables.hpp"

#include "bpf/shared/probe.h"

#include <cstdint>
#include <utility>

namespace gpusnoop {

// Where in the file the function begins that a probe is to sit in, and where there: this one, or where it would be
// single-stepped and another one is known that all arguments of the row come to, that.
std::pair<uint64_t, Placement> place(const Elf& elf, DispatchTables& tables, const Symbol& function,
                                     const probe_row& row);

} // namespace gpusnoop
