// SPDX-License-Identifier: Apache-2.0
#include "tools/cudasync/columns.hpp"

namespace gpusnoop::cudasync {

void validate_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    constexpr std::string_view measures[] = {"duration"};
    measure_number(s.measure, measures);
    check_fields(options, s.sort);
    s.latency = true;
    const Dimension wait[] = {{"wait", &s.wait}};
    if (s.by) {
        parse_by(*s.by, s.view, wait);
    } else {
        s.wait = true;
        s.view.who.pid |= !s.histogram();
    }
}

} // namespace gpusnoop::cudasync
