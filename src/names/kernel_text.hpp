// SPDX-License-Identifier: Apache-2.0
// Shortened kernel names for tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusnoop {

// Shortens a demangled kernel name to `width` columns: drops the return type and parameters, then replaces template
// arguments by <...> from the inside out, then replaces the middle by "...". If arguments or the middle were dropped,
// the result ends with "#" and four hex digits, a hash of the whole name, so that kernels stay distinguishable.
std::string shorten_kernel(std::string_view name, size_t width);

// The name without namespaces and template arguments. Several kernels may share it.
std::string base_of_kernel(std::string_view name);

// Options about kernel names, shared by all tools that show kernels.
struct NameOptions {
    std::string form = "short"; // "short", "full" or "base"
    bool no_cache = false;

    std::string cache_folder() const; // as expected by KernelNames
};

void check_name_options(const NameOptions& options); // throws UsageError

} // namespace gpusnoop
