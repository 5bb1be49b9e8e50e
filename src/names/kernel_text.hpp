// SPDX-License-Identifier: Apache-2.0
// A kernel's name, made readable.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusnoop {

// A demangled kernel name cut down for a table: return type and parameter list off, template arguments to <...> from
// the inside out until it fits in `width` columns, then cut in the middle with "...". Keeps what tells kernels apart:
// where template arguments or middles are left out, the name ends with "#" and four digits that stand for all of it.
std::string shorten_kernel(std::string_view name, size_t width);

// Its own name alone, without namespaces and template arguments: kernels that share it are not told apart.
std::string base_of_kernel(std::string_view name);

// How kernels get their names and how those are shown, in all tools that show some.
struct NameOptions {
    std::string form = "short"; // or full, base
    bool no_cache = false;

    std::string cache_folder() const; // for KernelNames
};

void check_name_options(const NameOptions& options); // throws UsageError

} // namespace gpusnoop
