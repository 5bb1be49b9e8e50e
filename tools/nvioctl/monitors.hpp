// SPDX-License-Identifier: Apache-2.0
// Detection of monitors: processes that only query GPU state (nvidia-smi, nvtop, DCGM). They are recognized by their
// driver calls, open files and mappings, not by name. A helper process reads the files and mappings, because that may
// hang.
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

    void note_call(const call_key& key); // must be called for every traced call, or once for each group of calls with
                                         // the same key

    // True if the process has made no call that GPU work needs, and uses neither unified memory nor CUDA or graphics
    // libraries. Also false as long as this is not known.
    bool only_polls(const ImageId& image);

    // Call this regularly, to receive late results and to detect a helper process that hangs.
    void tick() { reader_.poll(); }

    void forget(const std::set<ImageId>& images);

private:
    bool apply(const Message& message);

    std::set<ImageId> workers_;
    std::map<ImageId, bool> results_; // true: no sign of GPU work was found
    Reader reader_;
};

} // namespace gpusnoop
