// SPDX-License-Identifier: Apache-2.0
#include "tools/cudamemcpy/columns.hpp"

namespace gpusnoop::cudamemcpy {

void validate_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    s.histogram_of = static_cast<Measure>(measure_number(s.measure, measures));
    if (s.histogram_of == Measure::rate && options.failed_only)
        throw UsageError("copies that failed have no rate: leave out -x or -H");
    check_fields(options, s.sort);
    s.latency |= s.histogram_of == Measure::latency || s.histogram_of == Measure::rate;
    const Dimension own[] = {{"kind", &s.direction}, {"memory", &s.memory}, {"form", &s.form}};
    if (s.by) {
        parse_by(*s.by, s.view, own);
    } else {
        s.direction = true;
        s.view.who.pid |= !s.histogram();
    }
    // Durations of synchronous and asynchronous calls are not comparable.
    s.form |= s.latency;
}

} // namespace gpusnoop::cudamemcpy
