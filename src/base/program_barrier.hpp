// SPDX-License-Identifier: Apache-2.0
// Waiting until no BPF program that runs now runs any more.
#pragma once

#include "base/fd.hpp"

namespace gpusnoop {

class ProgramBarrier {
public:
    ProgramBarrier(); // throws Error

    // What is written before is read by every program that runs after. False where the kernel refuses. A few
    // milliseconds, or some ten on a large machine. Not for sleepable programs.
    bool wait() const;

private:
    Fd inner_, outer_;
};

} // namespace gpusnoop
