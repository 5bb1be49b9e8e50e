// SPDX-License-Identifier: Apache-2.0
// Who the processes are that lines of JSON are about: one line for each of them says what would be long on each of
// theirs.
#pragma once

#include "rows/output.hpp"
#include "who/processes.hpp"

#include <cstdint>
#include <map>

namespace gpusnoop {

class ToldProcesses {
public:
    explicit ToldProcesses(Processes& processes) : processes_(processes) {}

    // Before a line about it. Once, and again a minute later (time_ns): of a recording, only the end may be left.
    void tell(Output& output, const ImageId& image, const cgroups& ids, uint64_t time_ns);

private:
    Processes& processes_;
    std::map<ImageId, uint64_t> told_ns_;
};

} // namespace gpusnoop
