// SPDX-License-Identifier: Apache-2.0
#include "nvioctl_xids.hpp"

#include "clock.hpp"
#include "driver_calls.hpp"
#include "driver_devices.hpp"
#include "driver_names.hpp"
#include "process_line.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

namespace gpusnoop::nvioctl {
namespace {

// "  -1.234567 s nvidiactl RM_CONTROL FB_GET_INFO_V2 12.3 us NO_MEMORY", the last one first.
std::vector<std::string> texts(const recent_calls& recent, uint64_t until_ns)
{
    std::vector<std::string> lines;
    const uint64_t kept = std::min<uint64_t>(recent.count, RECENT_CALLS);
    for (uint64_t back = 1; back <= kept; back++) {
        const recent_call& call = recent.calls[(recent.count - back) % RECENT_CALLS];
        if (!call.kind)
            continue; // being written
        const double ago = (static_cast<double>(until_ns) - static_cast<double>(call.time_ns)) / 1e9;
        lines.push_back(
            fmt::format("{:+.6f} s  {} {}  {:.1f} us  {}", -ago, node_name(call.driver.node, call.driver.minor),
                        command_text(call.kind, call.driver.node, call.subject, call.flags),
                        static_cast<double>(call.duration_ns) / 1e3, outcome_text(call.driver.outcome, call.result)));
    }
    return lines;
}

} // namespace

void XidLines::attach(int recent_fd)
{
    recent_fd_ = recent_fd;
    xids_.attach();
    verbose("Xid reports: " + xids_.how());
}

// At once, where the log has named the process by now: it goes on calling.
void XidLines::add(const xid_record& record)
{
    xids_.add(record);
    look(false);
}

void XidLines::look(bool all)
{
    for (XidReport& report : xids_.take(clock_ns(CLOCK_MONOTONIC), all)) {
        Line& line = lines_.emplace_back(std::move(report), recent_calls{});
        if (line.report.pid)
            bpf_map_lookup_elem(recent_fd_, &*line.report.pid, &line.recent);
    }
}

void XidLines::print(Output& output, Processes& processes, bool all)
{
    look(all);
    for (const Line& line : lines_)
        print(output, processes, line);
    lines_.clear();
}

void XidLines::print(Output& output, Processes& processes, const Line& line)
{
    const XidReport& report = line.report;
    const std::vector<Column> columns = process_line_columns({
        {"GPU", "gpu", Unit::text, 12},
        {"XID", "xid", Unit::count, 4},
        {"NAME", "name", Unit::text, 28},
        {"MEANING", "meaning", Unit::text, 40},
        {"", "action", Unit::text, 0, false},
        {"", "text", Unit::text, 0, false},
    });
    const auto what = xid(report.xid);
    auto known = [&](std::string_view Xid::*part) {
        return what && !((*what).*part).empty() ? Cell(std::string((*what).*part)) : Cell();
    };
    const std::initializer_list<Cell> own{report.device.empty() ? Cell() : Cell(report.device),
                                          uint64_t{report.xid},
                                          known(&Xid::name),
                                          known(&Xid::meaning),
                                          known(&Xid::action),
                                          report.text.empty() ? Cell() : Cell(report.text)};
    const uint64_t wall_ns = report.time_ns + (clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
    if (line.recent.image.pid)
        return output.event(columns, process_line(line.recent.image, processes, wall_ns, own),
                            {"last_calls", texts(line.recent, report.time_ns)});
    // Nothing was seen of the process: what the log says of it is all there is.
    Row row{wall_ns, report.pid ? Cell(uint64_t{*report.pid}) : Cell(),
            report.comm.empty() ? Cell() : Cell(report.comm)};
    row.resize(columns.size() - own.size());
    row.insert(row.end(), own);
    output.event(columns, row, std::span<const std::string>());
}

} // namespace gpusnoop::nvioctl
