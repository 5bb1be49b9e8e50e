// SPDX-License-Identifier: Apache-2.0
#include "tools/gpualloc/columns.hpp"

namespace gpusnoop::gpualloc {

void validate_options(Settings& settings, Options& options)
{
    Settings& s = settings;
    s.histogram_of = static_cast<Measure>(measure_number(s.measure, measures));
    if (s.leaks + s.exited + s.events + s.histogram() > 1)
        throw UsageError("choose one of --leaks, --exited, -e and -H");
    if (s.exited && options.draws_flames())
        throw UsageError("--exited cannot be drawn as a flame graph: use --leaks");
    if ((s.leaks || s.exited) && (s.by || options.failed_only))
        throw UsageError("--leaks and --exited always group by process and call stack, and list no failed calls: "
                         "leave out --by and -x");
    if (s.older_than_ns && !s.leaks)
        throw UsageError("an age (-o) applies only to --leaks");
    if (s.histogram_of == Measure::lifetime && options.failed_only)
        throw UsageError("failed calls have no lifetime: leave out -x or -H");
    if (!s.leaks && !s.exited)
        check_fields(options, s.sort);
    else if (s.sort != "live_bytes")
        throw UsageError("--leaks and --exited are sorted by bytes held: leave out -s");
    else if (!options.columns.empty())
        throw UsageError("--leaks and --exited have columns of their own: leave out --columns");
    s.latency |= s.events || s.histogram_of == Measure::latency;
    s.view.vendor = false;              // the vendor of held memory is not recorded
    s.view.layer = options.failed_only; // memory allocated through one layer may be freed through the other
    s.operation = s.histogram_of == Measure::latency || options.failed_only;
    CallView& view = s.view;
    const Dimension own[] = {{"kind", &s.holding}, {"size", &s.size}, {"stack", &view.stack}};
    if (s.by)
        parse_by(*s.by, view, own);
    else
        view.who.pid |= !s.histogram();
    if (view.stream)
        throw UsageError("memory belongs to no stream: leave stream out of --by");
    if (view.stack && s.histogram())
        throw UsageError("a histogram cannot be grouped by stack: leave out --by stack or -H");
    view.stack |= s.leaks || s.exited;
    options.user_stacks |= view.stack;
    view.who.pid |= view.stack;
}

} // namespace gpusnoop::gpualloc
