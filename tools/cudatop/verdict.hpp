// SPDX-License-Identifier: Apache-2.0
// A rule that fired, and the process that it is about.
#pragma once

#include "proc/image.hpp"
#include "tools/cudatop/rules.hpp"

#include <cstdint>
#include <string>

namespace gpusnoop {

struct Verdict {
    ImageId process;
    std::string name;  // of the process
    std::string owner; // its pod or container; empty: none
    std::string pod_namespace, pod, container;
    uint32_t tid = 0; // of the thread that it is about; 0: of the whole process
    const Rule* rule = nullptr;
    Severity severity = Severity::none;
    std::string words;
    std::string next;   // the command
    int32_t stack = -1; // where in the program, as calls have it; negative: not known
    uint64_t caller = 0;
    bool exited = false; // the process
    uint64_t group = 0;  // shared by processes that may restart each other; 0: unknown
};

// The worst first, then by name.
bool comes_before(const Verdict& a, const Verdict& b);

} // namespace gpusnoop
