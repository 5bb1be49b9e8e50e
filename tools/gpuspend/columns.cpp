// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/columns.hpp"

#include "base/options.hpp"
#include "base/text.hpp"
#include "rows/field.hpp"
#include "rows/report.hpp"
#include "tools/gpuspend/cells.hpp"
#include "tools/gpuspend/prices.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <string>

namespace gpusnoop::gpuspend {
namespace {

using C = Context;
using L = Line;

template<bool View::*dimension>
Shown where_grouped(const C& c)
{
    return c.settings.rows.*dimension ? Shown::both : Shown::no;
}

Shown where_priced(const C& c)
{
    return c.priced ? Shown::both : Shown::no;
}

Shown where_measured(const C& c)
{
    return c.bill.measured ? Shown::both : Shown::json;
}

using F = Field<C, L>;

constexpr F fields[] = {
    {{"", "of", Unit::text},
     json_only<C>,
     [](const L& l, const C&) { return kind_name(l.kind); },
     "Kind of the line: `tenant`, `idle`, `unallocated` or `total`."},
    {{"POD", "", Unit::text, 32},
     [](const C& c) { return c.settings.rows.pod || c.settings.rows.container ? Shown::text : Shown::no; },
     pod_text,
     "The pod, or the owner of processes that are in no pod. Pods of the same name share a row."},
    {{"NAMESPACE", "", Unit::text, 20},
     where_grouped<&View::pod_namespace>,
     [](const L& l, const C& c) { return own_text(l, c, &Tenant::pod_namespace); }},
    {{"CONTAINER", "container", Unit::text, 20},
     where_grouped<&View::container>,
     of_tenant<&Tenant::container>,
     "Columns that identify the row, shown if `--by` names them; TEAM is also shown with `--teams`."},
    {{"TEAM", "team", Unit::text, 16},
     [](const C& c) { return c.settings.rows.team || !c.settings.teams.empty() ? Shown::both : Shown::no; },
     [](const L& l, const C& c) {
         return l.kind == LineKind::tenant ? text_if_any(l.key->tenant.team)
                : c.settings.rows.team     ? own_text(l, c, &Tenant::team)
                                           : Cell();
     }},
    {{"USER", "user", Unit::text, 12},
     where_grouped<&View::user>,
     [](const L& l, const C& c) { return own_text(l, c, &Tenant::user); }},
    {{"CGROUP", "cgroup", Unit::text, 40},
     where_grouped<&View::cgroup>,
     [](const L& l, const C& c) { return own_text(l, c, &Tenant::cgroup); }},
    {{"PID", "pid", Unit::count, 7},
     where_grouped<&View::pid>,
     [](const L& l, const C&) { return l.key && l.key->tenant.pid ? Cell(uint64_t{l.key->tenant.pid}) : Cell(); }},
    {{"COMM", "comm", Unit::text, 15},
     [](const C& c) { return c.settings.rows.pid || c.settings.rows.comm ? Shown::both : Shown::no; },
     [](const L& l, const C& c) { return own_text(l, c, &Tenant::comm); }},
    {{"", "namespace", Unit::text},
     json_only<C>,
     of_tenant<&Tenant::pod_namespace>,
     "Namespace and name of the pod. For a tenant outside pods, `owner` is its container, Slurm job, unit or cgroup."},
    {{"", "pod", Unit::text}, json_only<C>, of_tenant<&Tenant::pod>},
    {{"", "owner", Unit::text}, json_only<C>, of_tenant<&Tenant::owner>},
    {{"", "pods", Unit::count},
     json_only<C>,
     [](const L& l, const C&) {
         return l.row && !l.row->tenant.pods.empty() ? Cell(uint64_t{l.row->tenant.pods.size()}) : Cell();
     },
     "Number of pods with this name; at most 1024 are counted."},
    {{"DEVICE", "device", Unit::text, 14},
     where_grouped<&View::device>,
     [](const L& l, const C& c) {
         const View& rows = c.settings.rows;
         const bool alone =
             !rows.pod && !rows.container && !rows.of_processes() && !rows.pod_namespace && !rows.cgroup && !rows.team;
         return l.key ? text_if_any(l.key->device) : alone ? pod_text(l, c) : Cell();
     },
     "UUID of the device or MIG instance, or its PCI address or index if the UUID is not known (`--by device`)."},
    {{"DEVICES", "devices", Unit::count, 7},
     always<C>,
     devices,
     "Number of different devices that the row has held. A MIG instance counts as a device, but in the total, only "
     "GPUs count."},
    {{"IDS", "device_ids", Unit::text, 40}, always<C>, ids, "Ids of the devices that the row has held.", extra},
    {{"MODEL", "model", Unit::text, 24},
     always<C>,
     model,
     "Model of the devices that the row has held; empty if they differ.",
     extra},
    {{"", "vendor", Unit::text},
     json_only<C>,
     vendor,
     "Vendors of the devices that the row has held, as far as their models are known: `nvidia`, `amd` or "
     "`nvidia,amd`."},
    F{{"TIME", "device_time_ns", Unit::count, 8},
      always<C>,
      device_time,
      "Device time that the row used. The last three lines show the idle time, the unallocated time, and the total."}
        .in_text(in_time<device_time>),
    {{"", "used_ns", Unit::count},
     json_only<C>,
     used_time,
     "The row's share of the device time. `used_ns` covers the time in which the row launched, and IDLE the time in "
     "which it launched nothing."},
    F{{"IDLE", "idle_ns", Unit::count, 8}, always<C>, idle_time}.in_text(in_time<idle_time>),
    {{"", "allocated_ns", Unit::count},
     json_only<C>,
     ns<&Account::allocated_ns>,
     "Device time for which an allocation to the row is known. If a device is shared as replicas, only the row's "
     "replicas count."},
    {{"", "resident_ns", Unit::count},
     json_only<C>,
     ns<&Account::resident_ns>,
     "Device time during which the row had a context, had the device's file open, or made calls."},
    {{"", "driving_ns", Unit::count},
     json_only<C>,
     ns<&Account::driving_ns>,
     "Device time during which the row launched work."},
    {{"", "shared_ns", Unit::count},
     json_only<C>,
     ns<&Account::shared_ns>,
     "Part of used and idle time during which other tenants held the device, too."},
    {{"", "equally_ns", Unit::count},
     json_only<C>,
     ns<&Account::equally_ns>,
     "Part of shared_ns that was divided equally or by replicas, because no activity was counted."},
    {{"", "holding_ns", Unit::count},
     json_only<C>,
     [](const L& l, const C&) { return l.row ? Cell(l.row->tenant.holding_ns) : Cell(); },
     "Time during which the row held any device."},
    {{"", "quiet_ns", Unit::count},
     json_only<C>,
     [](const L& l, const C&) { return l.row ? Cell(l.row->tenant.quiet_ns) : Cell(); },
     "Part of holding_ns during which the row launched nothing on any device."},
    {{"LAUNCHES", "launches", Unit::count, 9},
     always<C>,
     used<&Used::launches>,
     "Launches of kernels and graphs on all devices. Captured launches are not counted. Launches and copies are "
     "counted at entry, so failed calls count, too."},
    {{"GRAPHKERN", "graph_kernels", Unit::count, 9},
     always<C>,
     used<&Used::graph_kernels>,
     "Kernels in launched graphs, as far as known.",
     extra},
    {{"BYTES", "copy_bytes", Unit::bytes, 7},
     always<C>,
     used<&Used::bytes>,
     "Bytes copied, set and prefetched, including failed calls."},
    {{"WAIT(s)", "wait_ns", Unit::seconds, 10},
     [](const C& c) { return c.settings.cheap ? Shown::no : Shown::both; },
     used<&Used::wait_ns>,
     "Time that threads waited for the GPU, in waits that have returned."},
    {{"BYTESEC", "memory_byte_seconds", Unit::bytes, 7},
     always<C>,
     memory,
     "Memory held, multiplied by the time it was held.",
     extra},
    {{"LAUNCH%", "launch_share_percent", Unit::percent, 7},
     always<C>,
     share_of_all<&Used::launches>,
     "The row's share of all launches (LAUNCH%), sampled busy time (BUSY%) and memory (MEM%) on its devices."},
    {{"BUSY%", "busy_share_percent", Unit::percent, 6}, always<C>, share_of_all<&Used::busy_ns>},
    {{"MEM%", "memory_share_percent", Unit::percent, 6}, always<C>, memory_share},
    {{"SMACT%", "sm_active_percent", Unit::percent, 6},
     where_measured,
     mean_percent<Figure::sm_active>,
     "Utilization of the devices while the row launched on them, from hardware counters. Text shows it only if a "
     "device has such counters."},
    {{"OCC%", "sm_occupancy_percent", Unit::percent, 6}, always<C>, mean_percent<Figure::sm_occupancy>, "", extra},
    {{"TENSOR%", "tensor_active_percent", Unit::percent, 7}, where_measured, mean_percent<Figure::tensor_active>},
    {{"DRAM%", "dram_active_percent", Unit::percent, 6}, where_measured, mean_percent<Figure::dram_active>},
    {{"GPU%", "gpu_busy_percent", Unit::percent, 6},
     always<C>,
     mean_percent<Figure::gpu_busy>,
     "GPU%: percentage of time in which a kernel of any process ran. FB: memory in use on the device. Both are means "
     "over the time in which the row launched on its devices.",
     extra},
    {{"FB", "memory_used_bytes", Unit::bytes, 7},
     always<C>,
     [](const L& l, const C&) {
         const auto bytes = l.row ? l.row->account.efficiency.mean(Figure::memory_used) : std::nullopt;
         return bytes ? Cell(static_cast<uint64_t>(*bytes)) : Cell();
     },
     "",
     extra},
    {{"", "efficiency_shared_ns", Unit::count},
     json_only<C>,
     [](const L& l, const C&) {
         return l.row && l.row->account.efficiency.sources ? Cell(l.row->account.efficiency.shared_ns) : Cell();
     },
     "Part of the time covered by the columns SMACT% to FB during which other tenants held the device, too. The values "
     "of these columns include the work of these tenants."},
    {{"", "measured_by", Unit::text},
     json_only<C>,
     [](const L& l, const C&) {
         return l.row ? text_if_any(measured_by_text(l.row->account.efficiency.sources)) : Cell();
     },
     "Source of the hardware counters: `nvml`, `dcgm` or `nvml,dcgm`."},
    {{"", "launches_on_unknown_device", Unit::count},
     json_only<C>,
     [](const L& l, const C&) {
         return l.row && l.row->tenant.elsewhere.launches ? Cell(l.row->tenant.elsewhere.launches) : Cell();
     },
     "Launches whose device is not known."},
    {{"", "split", Unit::text},
     json_only<C>,
     [](const L& l, const C& c) {
         return l.row && l.row->account.shared_ns ? Cell(std::string(split_name(c.settings.split))) : Cell();
     },
     "Measure by which the time of shared devices was divided: `launches`, `busy` or `memory` (`--split`)."},
    {{"SHARED", "shared", Unit::text, 6},
     always<C>,
     shared,
     "Shows `shared` if other tenants also held one of the devices. The row then has only a part of that device's "
     "time, and the counters include the work of others."},
    F{{"COST", "cost_micros", Unit::count, 9},
      where_priced,
      cost,
      "Cost of TIME; in JSON, in millionths of the currency's unit."}
        .in_text(in_money<cost>),
    F{{"IDLECOST", "idle_cost_micros", Unit::count, 9}, where_priced, idle_cost, "Cost of IDLE."}.in_text(
        in_money<idle_cost>),
    {{"", "currency", Unit::text},
     where_priced,
     [](const L&, const C& c) { return Cell(std::string(c.currency)); },
     "Currency of COST and IDLECOST."},
    {{"OVERHEAD%", "probes_cpu_percent", Unit::percent, 9},
     always<C>,
     [](const L& l, const C& c) {
         return l.kind == LineKind::total && c.probes_percent ? Cell(*c.probes_percent) : Cell();
     },
     "CPU time since the last report, as a percentage of one CPU, used by the probes in traced processes as far as it "
     "can be measured (OVERHEAD%), and by gpuspend itself (OWN%). Shown only in the last line."},
    {{"OWN%", "own_cpu_percent", Unit::percent, 5},
     always<C>,
     [](const L& l, const C& c) { return l.kind == LineKind::total && c.own_percent ? Cell(*c.own_percent) : Cell(); },
     "",
     extra},
    {{"HELDBY", "held_by", Unit::text, 16},
     always<C>,
     sources,
     "Sources that report the row as a holder of its devices: `kubelet`, `dra`, `config`, `environment`, `slurm`, "
     "`context`, `file` or `calls`."},
};

} // namespace

void View::parse(std::string_view list)
{
    const Dimension dimensions[] = {{"device", &device},
                                    {"team", &team},
                                    {"user", &user},
                                    {"pid", &pid},
                                    {"process", &pid},
                                    {"comm", &comm},
                                    {"container", &container},
                                    {"pod", &pod},
                                    {"namespace", &pod_namespace},
                                    {"cgroup", &cgroup}};
    parse_dimensions(list, names, [&](std::string_view name) {
        const auto* const found = std::ranges::find(dimensions, name, &Dimension::first);
        if (found != std::end(dimensions))
            *found->second = true;
        return found != std::end(dimensions);
    });
}

void check_fields(const Options& options, const std::string& sort)
{
    const std::vector<Column> columns = documented_columns(fields);
    check_columns(options.columns, columns, {});
    check_sort(columns, sort);
}

void print_bill(Output& output, const Context& context, const std::vector<std::string>& below)
{
    std::vector<ShownField<C, L>> shown;
    std::vector<Column> columns;
    const ColumnChoice choice(context.options.columns);
    for (const F& field : fields) {
        const Shown where = field.shown(context);
        add_shown(shown, field, where == Shown::no ? Shown::text : where);
        for (size_t i = columns.size(); i < shown.size(); i++) {
            Column column = shown[i].column;
            column.in_text = !column.header.empty() &&
                             choice.shows(field.column, where != Shown::no && column.in_text && !field.extra);
            columns.push_back(column);
        }
    }
    const auto row = [&](const Line& line) {
        Row cells;
        for (const auto& field : shown)
            cells.push_back(field.value(line, context));
        return cells;
    };
    struct Ordered {
        double order;
        Row row;
    };
    std::vector<Ordered> lines;
    for (const auto& [key, one] : context.bill.rows) {
        const Line line{LineKind::tenant, &key, &one};
        Ordered ordered{static_cast<double>(one.account.used_ns + one.account.idle_ns), row(line)};
        for (size_t i = 0; i < shown.size(); i++)
            if (shown[i].field->is_called(context.settings.sort) && !shown[i].field->is_called("device_time_ns"))
                ordered.order = sort_value(ordered.row[i]);
        lines.push_back(std::move(ordered));
    }
    std::ranges::stable_sort(lines, std::greater<>(), &Ordered::order);
    output.begin_table(columns, context.wall_ns, context.bill.covered_ns);
    for (size_t number = 0; number < lines.size(); number++)
        if (Output* const place = output.place_of_row(number, context.options.rows))
            place->row(columns, lines[number].row, {});
    if (context.bill.devices.empty()) {
        if (!lines.empty())
            output.row(columns, row({LineKind::total}), {"notes", below});
        return;
    }
    for (const LineKind kind : {LineKind::idle, LineKind::unallocated})
        output.row(columns, row({kind}), {});
    output.row(columns, row({LineKind::total}), {"notes", below});
}

} // namespace gpusnoop::gpuspend
