// SPDX-License-Identifier: Apache-2.0
// Short forms of kernel names for tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusnoop {

// Shortens a demangled kernel name to `width` columns. Drops the return type and parameters first. If that is not
// enough, replaces template arguments by <...>, starting with the innermost, and finally replaces the middle by "...".
// If it drops arguments or the middle, it appends "#" and four hex digits, a hash of the whole name, to keep kernels
// distinguishable.
std::string shorten_kernel(std::string_view name, size_t width);

// The name without namespaces and template arguments. Several kernels may share it.
std::string base_of_kernel(std::string_view name);

// Options for kernel names, shared by all tools that show kernels.
struct NameOptions {
    std::string form = "short"; // "short", "full" or "base"
    bool no_cache = false;

    std::string cache_folder() const; // folder to pass to the constructor of KernelNames
};

void check_name_options(const NameOptions& options); // throws UsageError

} // namespace gpusnoop
