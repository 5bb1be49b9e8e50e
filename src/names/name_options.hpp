// SPDX-License-Identifier: Apache-2.0
// How kernels get their names and how those are shown, in all tools that show some.
#pragma once

#include <string>

namespace gpusnoop {

struct NameOptions {
    std::string form = "short"; // or full, base
    bool no_cache = false;

    std::string cache_folder() const; // for KernelNames
};

void check_name_options(const NameOptions& options); // throws UsageError

} // namespace gpusnoop
