// SPDX-License-Identifier: Apache-2.0
// GPUs that a container runtime or Slurm has named in a process's environment variables. A helper process reads the
// environment, because the traced process controls it and cannot be trusted.
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
    std::string slurm_gpus{};      // SLURM_JOB_GPUS or, if unset, SLURM_STEP_GPUS: indices of GPUs in PCI order
};

// Parses an environment of "NAME=VALUE" strings, each ended by a zero byte.
Allotment allotment_in(std::string_view environment);

// The devices in a list. Ranges ("0-3") are expanded. Skips the words "all" (which many images set), "none" and "void".
std::vector<std::string> devices_in(std::string_view list);

class Allotments {
public:
    Allotments();

    // Returns the GPUs that the environment of a process names. The result is empty until the environment has been
    // read. start_ns: start time of the process; it distinguishes processes whose pid was reused.
    const Allotment& of(uint32_t pid, uint64_t start_ns);
    // Receives results, and forgets processes for which of() has not been called since the last sweep().
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
