// SPDX-License-Identifier: Apache-2.0
// Processes that only ask the driver how a GPU is: nvidia-smi, nvtop, DCGM. Told by what they do, not by their names.
#pragma once

#include "bpf/shared/call.h"
#include "proc/image.hpp"

#include <map>
#include <set>

namespace gpusnoop {

class Monitors {
public:
    void see(const call_key& key); // each call, or row of calls

    // It has been seen to make no call that work needs, and has neither unified memory nor CUDA or graphics libraries.
    bool only_polls(const ImageId& image);

    void forget(const std::set<ImageId>& images);

private:
    std::set<ImageId> workers_;
    std::map<ImageId, bool> looked_at_; // true: nothing of a worker was found
};

} // namespace gpusnoop
