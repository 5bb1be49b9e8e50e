// SPDX-License-Identifier: Apache-2.0
#include "tools/cudalaunch/columns.hpp"

#include "run/shared_options.hpp"

#include <fmt/format.h>

namespace gpusnoop::cudalaunch {

void validate_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    s.histogram_of = static_cast<Measure>(measure_number(s.measure, measures));
    if (options.failed_only && s.histogram_of == Measure::gap)
        throw UsageError("a gap has no result: leave out -x");
    if (s.max_overhead && s.histogram_of == Measure::gap)
        throw UsageError(
            "--max-overhead samples launches, but a gap is measured between consecutive ones: leave out one of them");
    if (s.graphs != "both" && s.graphs != "expand" && s.graphs != "count")
        throw UsageError(fmt::format("--graphs takes expand, count or both, not '{}'", s.graphs));
    check_name_options(s.names);
    check_fields(options, s.sort);
    s.latency |= s.histogram_of == Measure::latency;
    const Dimension kernel[] = {{"kernel", &s.kernel}};
    if (s.by)
        parse_by(*s.by, s.view, kernel);
    else
        s.kernel = !s.histogram();
}

} // namespace gpusnoop::cudalaunch
