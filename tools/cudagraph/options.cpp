// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagraph/columns.hpp"

namespace gpusnoop::cudagraph {

void validate_options(Settings& settings, Options& options)
{
    Settings& s = settings;
    s.histogram_of = static_cast<Measure>(measure_number(s.measure, measures));
    if (s.summary && (s.by || s.events || s.histogram()))
        throw UsageError("--summary groups by process: leave out --by, -e and -H");
    if (s.storms && (s.summary || s.by || s.events || s.histogram() || options.failed_only))
        throw UsageError("--storms prints lines of its own: leave out --summary, --by, -e, -H and -x");
    if (s.storms && !options.columns.empty())
        throw UsageError("--storms prints lines of its own: leave out --columns");
    if (s.warm_up_s && !s.storms)
        throw UsageError("--warm-up applies only to storms: also give --storms");
    if (options.failed_only && s.histogram_of == Measure::nodes)
        throw UsageError("with -x graphs are not tracked, so their nodes are unknown: leave out -x or -H nodes");
    check_fields(options, s.sort);
    // Counts of launches do not need return probes.
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
