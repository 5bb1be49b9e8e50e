// SPDX-License-Identifier: Apache-2.0
// Output of nvioctl --xid: a line for a GPU error, followed by the last calls of the process that caused the error.
#pragma once

#include "bpf/shared/ioctl.h"
#include "gpu/xids.hpp"
#include "rows/who.hpp"

#include <cstdint>
#include <vector>

namespace gpusnoop::nvioctl {

// recent: the last calls of the process; empty (pid 0) if none was traced.
void print_xid(Output& output, const XidReport& report, const recent_calls& recent, Processes& processes,
               uint64_t wall_ns);

std::vector<Column> xid_columns();

} // namespace gpusnoop::nvioctl
