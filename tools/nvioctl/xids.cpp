// SPDX-License-Identifier: Apache-2.0
#include "tools/nvioctl/xids.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "tools/nvioctl/xid_line.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

namespace gpusnoop::nvioctl {

void XidLines::attach(int recent_fd)
{
    recent_fd_ = recent_fd;
    Xids::attach();
    verbose("Xid reports: " + how());
}

// If the kernel log already names the process that caused the error, the last calls of this process are copied at once,
// before newer calls overwrite them.
void XidLines::add(const xid_record& record)
{
    Xids::add(record);
    print_due(false);
}

void XidLines::print_due(bool all)
{
    for (XidReport& report : drain(clock_ns(CLOCK_MONOTONIC), all)) {
        Line& line = lines_.emplace_back(std::move(report), recent_calls{});
        if (line.report.pid)
            bpf_map_lookup_elem(recent_fd_, &*line.report.pid, &line.recent);
    }
}

void XidLines::print(Output& output, Processes& processes, bool all)
{
    print_due(all);
    const uint64_t wall_offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
    for (const Line& line : lines_)
        print_xid(output, line.report, line.recent, processes, line.report.time_ns + wall_offset_ns);
    lines_.clear();
}

} // namespace gpusnoop::nvioctl
