// SPDX-License-Identifier: Apache-2.0
// Which GPUs a process was started with, by its environment: a container runtime's word, or Slurm's. It is the process'
// own memory, so a helper reads it.
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
    std::string slurm_gpus{};      // SLURM_JOB_GPUS, else SLURM_STEP_GPUS: the node's numbers, in PCI order
};

// Of an environment, "NAME=VALUE" and a zero byte each.
Allotment allotment_in(std::string_view environment);

// Names that are devices: none of "all", which is in many images, "none" and "void". Ranges ("0-3") are all in them.
std::vector<std::string> devices_in(std::string_view list);

class Allotments {
public:
    Allotments();

    // Empty where it is not known, or not known yet. start_ns: or a pid would be taken for the next one's.
    const Allotment& of(uint32_t pid, uint64_t start_ns);
    // Takes what has come, and forgets those that nobody has asked for since the last time.
    void sweep();

private:
    using Process = std::pair<uint32_t, uint64_t>;
    struct Known {
        Allotment allotment;
        bool asked_for = true;
    };
    bool apply(const Message& message);

    std::map<Process, Known> known_;
    Reader reader_;
};

} // namespace gpusnoop
