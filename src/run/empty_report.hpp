// SPDX-License-Identifier: Apache-2.0
// What stands in the place of a report that has nothing to show: whether nobody did anything, or nobody could have.
#pragma once

#include "base/options.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

struct EmptyReport {
    std::string_view one{}; // of what was looked for: "launch"
    std::chrono::nanoseconds length{};
    std::string cgroup{};          // by its name; empty: all of them
    std::optional<size_t> users{}; // processes asked for that map a driver; nullopt: that does not matter
    bool named_alone = false;      // those are processes whose name contains what was asked for
    bool some_unreadable = false;  // processes, so that there may be more of them
    size_t unreadable_files = 0;   // CUDA libraries that could not be opened
    bool target_ended = false;     // the one process that was asked for
    bool driver_missing = false;   // of the kernel
};

// "no launch by process 1234 in 5 s; it maps no CUDA driver"
std::string sentence(const EmptyReport& report, const Options& options);

} // namespace gpusnoop
