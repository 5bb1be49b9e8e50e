// SPDX-License-Identifier: Apache-2.0
#include "tools/nvioctl/columns.hpp"

namespace gpusnoop::nvioctl {

void validate_options(Settings& settings, const Options& options)
{
    Settings& s = settings;
    constexpr std::string_view measures[] = {"latency"};
    measure_number(s.measure, measures);
    if (s.xid && (s.events || s.histogram() || s.by || options.failed_only || s.no_monitor || s.least_ns ||
                  !options.columns.empty()))
        throw UsageError("--xid prints lines of its own: leave out --by, -e, -H, -x, -l, --columns and --no-monitor");
    check_fields(options, s.sort);
    s.latency = true;
    const Dimension own[] = {{"command", &s.command}, {"device", &s.node}, {"class", &s.object_class}};
    if (s.by) {
        parse_by(*s.by, s.view, own, s.of_functions);
    } else {
        s.command = true;
        s.node |= !s.histogram();
        s.view.who.pid |= !s.histogram();
    }
}

} // namespace gpusnoop::nvioctl
