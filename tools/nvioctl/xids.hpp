// SPDX-License-Identifier: Apache-2.0
// Lines of nvioctl --xid. A line is delayed until the process that caused the error is known.
#pragma once

#include "gpu/xids.hpp"
#include "rows/output.hpp"
#include "who/processes.hpp"

#include <vector>

namespace gpusnoop::nvioctl {

class XidLines : Xids {
public:
    using Xids::configure;
    using Xids::Xids;
    void attach(int recent_fd); // recent_fd: the kernel side's map of last calls; throws Error

    void add(const xid_record& record);
    void print(Output& output, Processes& processes, bool all); // all: also print lines whose process is not known yet

private:
    struct Line {
        XidReport report;
        recent_calls recent{}; // the process's last calls at the time when the process became known
    };

    void print_due(bool all);

    int recent_fd_ = -1;
    std::vector<Line> lines_; // lines not printed yet
};

} // namespace gpusnoop::nvioctl
