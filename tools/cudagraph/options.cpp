// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagraph/options.hpp"

#include "run/command_line.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop::cudagraph {

void add_own_options(CommandLine& line, Settings& settings)
{
    line.flag("--summary", "one row per process: captures, instantiations, share of kernels", settings.summary);
    line.number_or_none("--storms", "N", "who captures or instantiates graphs more than N times a minute (6)",
                        settings.storms, {1, 1 << 20}, "6");
    line.text("--warm-up", "SEC", "with --storms: ignore the first seconds of each process (60; or 5m)",
              [&settings](const std::string& text) {
                  using namespace std::chrono_literals;
                  settings.warm_up_s =
                      std::chrono::duration<double>(time_argument("--warm-up", text, "s", 0ns, 240h)).count();
              });
}

void validate_options(Settings& settings, Options& options)
{
    Settings& s = settings;
    s.histogram_of = static_cast<Measure>(measure_number(s.measure, measures));
    if (s.summary && (s.by || s.events || s.histogram()))
        throw UsageError("--summary is by process: leave out --by, -e and -H");
    if (s.storms && (s.summary || s.by || s.events || s.histogram() || options.failed_only))
        throw UsageError("--storms prints lines of its own: leave out --summary, --by, -e, -H and -x");
    if (s.storms && !options.columns.empty())
        throw UsageError("--storms prints lines of its own: leave out --columns");
    if (s.warm_up_s && !s.storms)
        throw UsageError("--warm-up applies only to storms: also give --storms");
    if (options.failed_only && s.histogram_of == Measure::nodes)
        throw UsageError("with -x graphs are not tracked, so their nodes are unknown: leave out -x or -H nodes");
    check_fields(options, s.sort);
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
