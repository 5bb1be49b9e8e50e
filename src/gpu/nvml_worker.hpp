// SPDX-License-Identifier: Apache-2.0
// NVML in a process of its own. A call to it lasts as long as the driver takes, which is for ever where a GPU fails:
// just then the tool has to go on.
#pragma once

#include "base/fd.hpp"
#include "gpu/nvml_message.hpp"
#include "reader/child.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace gpusnoop {

class NvmlWorker {
public:
    // devices: their state and who uses them are asked for, too.
    NvmlWorker(const NvmlPlaces& places, bool devices);

    // Asks, unless it has not answered the last time, and waits no longer than that. nullopt: no answer yet. The first
    // answer comes unasked, and says whether NVML is there.
    std::optional<NvmlAnswers> ask(std::chrono::milliseconds longest);

    // As the last ask() found it: there will be no answer any more.
    bool ended() const { return ended_; }

private:
    struct Ends {
        Fd ours, theirs;
    };
    static Ends connected();

    std::optional<NvmlAnswers> receive(std::chrono::milliseconds longest);

    Ends ends_;
    Child child_;
    bool asked_ = true; // an answer is due
    bool ended_ = false;
    std::string received_;
};

} // namespace gpusnoop
