// SPDX-License-Identifier: Apache-2.0
// How many threads want the CPUs of this machine.
#pragma once

#include <optional>
#include <string_view>

namespace gpusnoop {

struct MachineLoad {
    double running = 0; // threads that run, or could, without the one that asks
    double cpus = 0;    // that are online
};

// From the text of /proc/stat.
std::optional<MachineLoad> parse_machine_load(std::string_view stat);

// At this moment; nullopt where /proc does not tell.
std::optional<MachineLoad> machine_load();

} // namespace gpusnoop
