// SPDX-License-Identifier: Apache-2.0
// Processes that only ask the driver how a GPU is: nvidia-smi, nvtop, DCGM. Told by what they do, not by their names.
// What they have open and mapped is theirs to choose, and may hang who looks at it: a helper does.
#pragma once

#include "bpf/shared/call.h"
#include "proc/mapped_file.hpp"
#include "reader/reader.hpp"

#include <map>
#include <set>

namespace gpusnoop {

class Monitors {
public:
    Monitors();

    void see(const call_key& key); // each call, or row of calls

    // It has been seen to make no call that work needs, and has neither unified memory nor CUDA or graphics libraries.
    // False where that is not known, or not yet.
    bool only_polls(const ImageId& image);

    // Now and then: takes what has come late, and notices that the helper hangs.
    void tick() { reader_.poll(); }

    void forget(const std::set<ImageId>& images);

private:
    bool apply(const Message& message);

    std::set<ImageId> workers_;
    std::map<ImageId, bool> looked_at_; // true: nothing of a worker was found
    Reader reader_;
};

} // namespace gpusnoop
