// SPDX-License-Identifier: Apache-2.0
#include "run/clean.hpp"

#include "attach/tracefs.hpp"
#include "base/error.hpp"
#include "names/scan_cache.hpp"
#include "run/preflight.hpp"

#include <fmt/format.h>

namespace gpusnoop {
namespace {

std::string count(unsigned n, std::string_view what)
{
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string clean_events()
try {
    const LeftEvents events = remove_leftover_events(Tracefs());
    std::string said;
    if (events.removed)
        said += fmt::format("removed {} of runs that were killed\n", count(events.removed, "uprobe event"));
    if (events.in_use)
        said += fmt::format("{} of runs that were killed are in use, and were not removed\n",
                            count(events.in_use, "uprobe event"));
    if (events.of_living)
        said += fmt::format("left alone: {} of processes that are alive\n", count(events.of_living, "uprobe event"));
    return said;
} catch (const Error& error) {
    verbose(error.what()); // where there is no tracefs, nothing has been left there
    return {};
}

std::string clean_cache()
{
    const std::string folder = ScanCache::default_folder();
    const unsigned removed = ScanCache(folder).remove_unfinished();
    return removed ? fmt::format("removed {} from {}\n", count(removed, "unfinished file"), folder) : std::string();
}

} // namespace

std::string clean_up()
{
    preflight(false); // in another pid namespace, the living would look dead
    const std::string said = clean_events() + clean_cache();
    return said.find("removed") == std::string::npos ? said + "nothing to remove\n" : said;
}

} // namespace gpusnoop
