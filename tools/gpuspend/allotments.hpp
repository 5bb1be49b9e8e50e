// SPDX-License-Identifier: Apache-2.0
// GPUs named in a process's environment variables by a container runtime or Slurm. A helper reads the environment,
// because the process controls its contents.
#pragma once

#include "reader/reader.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

struct Allotment {
    std::string visible_devices{}; // NVIDIA_VISIBLE_DEVICES
    std::string slurm_gpus{};      // SLURM_JOB_GPUS, else SLURM_STEP_GPUS: indices on the node, in PCI order
};

// Parses an environment of "NAME=VALUE" strings, each ended by a zero byte.
Allotment allotment_in(std::string_view environment);

// The devices in a list, without the words "all" (set in many images), "none" and "void". Ranges ("0-3") are expanded.
std::vector<std::string> devices_in(std::string_view list);

class Allotments {
public:
    Allotments();

    // Empty if not known (yet). start_ns: distinguishes processes that reuse a pid.
    const Allotment& of(uint32_t pid, uint64_t start_ns);
    // Receives results, and forgets processes that of() was not called for since the last sweep().
    void sweep();

private:
    using Process = std::pair<uint32_t, uint64_t>;
    struct Known {
        Allotment allotment;
        bool selected = true; // of() was called since the last sweep()
    };
    bool apply(const Message& message);

    std::map<Process, Known> known_;
    Reader reader_;
};

} // namespace gpusnoop
