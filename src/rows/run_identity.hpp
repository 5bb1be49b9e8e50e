// SPDX-License-Identifier: Apache-2.0
// Which run lines of JSON are of, so that those of several can lie in one file, and be told apart on another machine.
#pragma once

#include <string>

namespace gpusnoop {

struct RunIdentity {
    std::string run; // the same for no other run of any machine
    std::string host;
    std::string boot_id; // of the kernel: clocks other than that of the day are comparable within it
    std::string command; // that the tool was started with; on the first line alone
};

// Of this process. Equal each time it is asked.
RunIdentity this_run();

} // namespace gpusnoop
