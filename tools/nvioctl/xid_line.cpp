// SPDX-License-Identifier: Apache-2.0
#include "tools/nvioctl/xid_line.hpp"

#include "gpu/driver_names.hpp"
#include "gpu/gpu_files.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

namespace gpusnoop::nvioctl {
namespace {

struct XidLine : ProcessLine {
    const XidReport& report;
    std::optional<Xid> entry; // the Xid in NVIDIA's catalog
};

template<std::string_view Xid::*part>
Cell of_catalog(const XidLine& line, const AnyRun&)
{
    return line.entry ? text_if_any((*line.entry).*part) : Cell();
}

const ProcessField<XidLine> xid_fields[] = {
    {{"GPU", "gpu", Unit::text, 12},
     in_any_run,
     [](const XidLine& l, const AnyRun&) { return text_if_any(l.report.device); },
     "PCI address of the GPU."},
    {{"XID", "xid", Unit::count, 4},
     in_any_run,
     [](const XidLine& l, const AnyRun&) { return Cell(uint64_t{l.report.xid}); },
     "Number of the Xid, the driver's name for it, and its meaning."},
    {{"NAME", "name", Unit::text, 28}, in_any_run, of_catalog<&Xid::name>},
    {{"MEANING", "meaning", Unit::text, 40}, in_any_run, of_catalog<&Xid::meaning>},
    {{"", "action", Unit::text},
     in_any_run,
     of_catalog<&Xid::action>,
     "First action that NVIDIA's catalog of Xids recommends."},
    {{"", "text", Unit::text},
     in_any_run,
     [](const XidLine& l, const AnyRun&) { return text_if_any(l.report.text); },
     "The driver's message for this error."},
};

// Lines such as "-1.234567 s  nvidiactl RM_CONTROL FB_GET_INFO_V2  12.3 us  NO_MEMORY", the most recent call first.
std::vector<std::string> texts(const recent_calls& recent, uint64_t until_ns)
{
    std::vector<std::string> lines;
    const uint64_t kept = std::min<uint64_t>(recent.count, RECENT_CALLS);
    for (uint64_t back = 1; back <= kept; back++) {
        const recent_call& call = recent.calls[(recent.count - back) % RECENT_CALLS];
        if (!call.kind)
            continue; // the kernel side is writing this entry
        const double ago = (static_cast<double>(until_ns) - static_cast<double>(call.time_ns)) / 1e9;
        lines.push_back(
            fmt::format("{:+.6f} s  {} {}  {:.1f} us  {}", -ago, node_name(call.driver.node, call.driver.minor),
                        command_text(call.kind, call.driver.node, call.subject, call.flags),
                        static_cast<double>(call.duration_ns) / 1e3, outcome_text(call.driver.outcome, call.result)));
    }
    return lines;
}

} // namespace

void print_xid(Output& output, const XidReport& report, const recent_calls& recent, Processes& processes,
               uint64_t wall_ns)
{
    auto print = [&](ProcessLine of, ExtraLines below) {
        print_process_line<XidLine>(output, xid_fields, {std::move(of), report, xid(report.xid)}, below);
    };
    if (recent.image.pid)
        return print({recent.image, processes, wall_ns}, {"last_calls", texts(recent, report.time_ns)});
    // No calls of the process were traced, so only the kernel log has its pid and name.
    print({cell_if(report.pid), text_if_any(report.comm), wall_ns}, {});
}

std::vector<Column> xid_columns()
{
    return process_line_columns<XidLine>(xid_fields);
}

} // namespace gpusnoop::nvioctl
