// SPDX-License-Identifier: Apache-2.0
#include "cudagraph_options.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop::cudagraph {

void add_own_options(CLI::App& app, Settings& settings)
{
    app.add_flag("--summary", settings.summary, "one row per process: captures, instantiations, share of kernels");
    app.add_option("--storms", settings.storms,
                   "a line for each process that captures or instantiates more than N times in a minute (6)")
        ->expected(0, 1)
        ->default_str("6")
        ->check(CLI::Range(1, 1 << 20).description(""))
        ->type_name("N");
    app.add_option("--warm-up", settings.warm_up_s, "with --storms: not in the first so many seconds (60)")
        ->check(CLI::Range(0.0, 1e6).description(""))
        ->type_name("SEC");
}

void settle_options(Settings& settings, Options& options)
{
    Settings& s = settings;
    constexpr std::pair<std::string_view, Measure> measures[] = {{"", Measure::none},
                                                                 {"launch", Measure::launch},
                                                                 {"instantiate", Measure::instantiate},
                                                                 {"nodes", Measure::nodes}};
    auto measure = std::ranges::find(measures, s.measure, &std::pair<std::string_view, Measure>::first);
    if (measure == std::end(measures))
        throw UsageError(fmt::format("-H takes launch, instantiate or nodes, not '{}'", s.measure));
    s.histogram_of = measure->second;
    if (s.summary && (s.by || s.events || s.histogram()))
        throw UsageError("--summary is by process: leave out --by, -e and -H");
    if (s.storms && (s.summary || s.by || s.events || s.histogram() || options.failed_only))
        throw UsageError("--storms has lines of its own: leave out --summary, --by, -e, -H and -x");
    if (s.warm_up_s && !s.storms)
        throw UsageError("--warm-up is of storms: give --storms, too");
    if (s.warm_up_s && std::isnan(*s.warm_up_s)) // in no range, and outside of none
        throw UsageError("--warm-up must be a number from 0 to 1000000");
    if (options.failed_only && s.histogram_of == Measure::nodes)
        throw UsageError("with -x graphs are not followed, and their nodes not known: leave out -x or -H nodes");
    check_sort(s.sort);
    // What is only counted needs no return of launches.
    s.latency = !s.summary && !s.storms && s.histogram_of != Measure::nodes;
    s.time_instantiations = s.histogram_of == Measure::instantiate;
    const Dimension graph[] = {{"graph", &s.exec}};
    if (s.by) {
        parse_by(*s.by, s.view, graph);
    } else {
        s.exec = !s.histogram() && !s.summary && !options.failed_only;
        s.view.who.pid |= !s.histogram();
        s.view.function |= options.failed_only;
    }
    s.view.who.pid |= s.exec; // a graph belongs to a process
    if (s.storms) {
        s.exec = false;
        s.view.stack = options.user_stacks = true;
    }
}

} // namespace gpusnoop::cudagraph
