// SPDX-License-Identifier: Apache-2.0
// CPUs that come online, from the kernel's uevents (lib/kobject_uevent.c).
#pragma once

#include "base/fd.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace gpusnoop {

class CpuHotplug {
public:
    CpuHotplug(); // sees nothing, and descriptor() is -1 with errno, if the kernel refuses the socket

    int descriptor() const { return socket_.get(); } // readable when uevents wait

    struct Online {
        std::vector<int> cpus;
        bool lost = false; // the socket overflowed, so any CPU may have come online
    };
    Online drain();

    // The CPU that one uevent reports online, as in "online@/devices/system/cpu/cpu3", then KEY=VALUE strings.
    static std::optional<int> parse(std::string_view uevent);

private:
    Fd socket_;
};

} // namespace gpusnoop
