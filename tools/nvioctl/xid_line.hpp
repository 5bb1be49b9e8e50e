// SPDX-License-Identifier: Apache-2.0
// Line of nvioctl --xid: a GPU error, followed by the last calls of the process that caused it.
#pragma once

#include "bpf/shared/ioctl.h"
#include "gpu/xids.hpp"
#include "rows/who.hpp"

#include <cstdint>
#include <vector>

namespace gpusnoop::nvioctl {

// recent: empty (pid 0) if no calls of the process were seen.
void print_xid(Output& output, const XidReport& report, const recent_calls& recent, Processes& processes,
               uint64_t wall_ns);

std::vector<Column> xid_columns();

} // namespace gpusnoop::nvioctl
