// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace gpusnoop {

// Some figures of a process are estimates: its calls were counted for a part of the time that it worked.
struct Sampled {
    double percent = 100;          // of the CPU time that it used
    std::optional<double> error{}; // percent: the estimate and the truth differ by less, in 19 of 20 reports
};

} // namespace gpusnoop
