// SPDX-License-Identifier: Apache-2.0
// Runnable threads and online CPUs of this machine.
#pragma once

#include <optional>
#include <string_view>

namespace gpusnoop {

struct MachineLoad {
    double running = 0; // number of runnable threads, without the thread that reads /proc/stat
    double cpus = 0;    // number of online CPUs
};

// stat: the text of /proc/stat.
std::optional<MachineLoad> parse_machine_load(std::string_view stat);

// The current load; nullopt if /proc does not report it.
std::optional<MachineLoad> machine_load();

} // namespace gpusnoop
