// SPDX-License-Identifier: Apache-2.0
// Lines of nvioctl --xid: an error of a GPU, and below it the last calls of the process that it is about.
#pragma once

#include "output.hpp"
#include "processes.hpp"
#include "xids.hpp"

namespace gpusnoop {

class XidLines {
public:
    // Between open and load.
    explicit XidLines(bpf_object* object) : xids_(object) {}

    template<class Rodata>
    void configure(Rodata& data) const
    {
        data.xid_device_offset = xids_.offsets().device;
        data.xid_number_offset = xids_.offsets().number;
        data.xid_text_offset = xids_.offsets().text;
    }
    void attach(int recent_fd); // the kernel side's table of last calls; throws Error

    void add(const xid_record& record) { xids_.add(record); }
    void print(Output& output, Processes& processes, bool all); // those whose process is known; or all

private:
    void print(Output& output, Processes& processes, const XidReport& report);

    Xids xids_;
    int recent_fd_ = -1;
};

// Programs for Xids are not to be loaded.
void leave_out_xids(bpf_object* object);

} // namespace gpusnoop
