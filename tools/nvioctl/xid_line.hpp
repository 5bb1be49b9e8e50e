// SPDX-License-Identifier: Apache-2.0
// The line of nvioctl --xid: an error of a GPU, and below it the last calls of the process that it is about.
#pragma once

#include "bpf/shared/ioctl.h"
#include "gpu/xids.hpp"
#include "rows/who.hpp"

#include <cstdint>
#include <vector>

namespace gpusnoop::nvioctl {

// recent: of no process where nothing was seen of it.
void print_xid(Output& output, const XidReport& report, const recent_calls& recent, Processes& processes,
               uint64_t wall_ns);

std::vector<Column> xid_columns();

} // namespace gpusnoop::nvioctl
