// SPDX-License-Identifier: Apache-2.0
#include "names/name_options.hpp"

#include "base/options.hpp"
#include "names/scan_cache.hpp"

#include <fmt/format.h>

namespace gpusnoop {

std::string NameOptions::cache_folder() const
{
    return no_cache ? std::string() : ScanCache::default_folder();
}

void check_name_options(const NameOptions& options)
{
    const std::string& form = options.form;
    if (form != "full" && form != "short" && form != "base")
        throw UsageError(fmt::format("--names takes short, full or base, not '{}'", form));
}

} // namespace gpusnoop
