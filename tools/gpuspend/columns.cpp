// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/columns.hpp"

#include "base/options.hpp"
#include "base/text.hpp"
#include "rows/column_choice.hpp"
#include "tools/gpuspend/prices.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <string>

namespace gpusnoop::gpuspend {
namespace {

// Who a line is about: a tenant, the time that nobody was given, or all of the machine's.
enum class Of : uint8_t { tenant, idle, unallocated, total };

struct Line {
    Of of = Of::tenant;
    const BillKey* key = nullptr;
    const BillRow* row = nullptr;
};

using C = Context;
using L = Line;

Cell known(const std::string& text)
{
    return text.empty() ? Cell() : Cell(text);
}

Cell word(Of of)
{
    constexpr std::string_view words[] = {"tenant", "idle", "unallocated", "total"};
    return Cell(std::string(words[static_cast<size_t>(of)]));
}

template<std::string Tenant::*part>
Cell of_tenant(const L& l, const C&)
{
    return l.key ? known(l.key->tenant.*part) : Cell();
}

template<bool View::*dimension>
Shown where_told_apart(const C& c)
{
    return c.settings.rows.*dimension ? Shown::both : Shown::no;
}

Shown always(const C&)
{
    return Shown::both;
}

Shown json_only(const C&)
{
    return Shown::json;
}

Shown where_priced(const C& c)
{
    return c.priced ? Shown::both : Shown::no;
}

// The first column of text names the line, whatever it is about.
Cell pod_text(const L& l, const C&)
{
    if (l.of != Of::tenant)
        return Cell(fmt::format("({})", std::get<std::string>(word(l.of))));
    const Tenant& tenant = l.key->tenant;
    if (!tenant.pod.empty())
        return Cell(tenant.pod_namespace.empty() ? tenant.pod : tenant.pod_namespace + "/" + tenant.pod);
    return known(tenant.owner);
}

Cell own_text(const L& l, const C& c, std::string Tenant::*part)
{
    // Where no pod names the line.
    const View& rows = c.settings.rows;
    if (l.of != Of::tenant)
        return rows.pod || rows.container ? Cell() : pod_text(l, c);
    const std::string& text = l.key->tenant.*part;
    return text.empty() && !rows.pod && !rows.container ? known(l.key->tenant.owner) : known(text);
}

// Of time on devices: of who is on none that is known, nothing.
bool is_on_devices(const L& l, const C& c)
{
    return l.row ? !l.row->devices.empty() : !c.bill.devices.empty();
}

Cell figure(const L& l, uint64_t Account::*part)
{
    return l.row && !l.row->devices.empty() ? Cell(l.row->account.*part) : Cell();
}

template<uint64_t Account::*part>
Cell ns(const L& l, const C&)
{
    return figure(l, part);
}

Cell counted(const L& l, uint64_t Used::*part)
{
    return l.row ? Cell(l.row->account.used.*part + l.row->tenant.elsewhere.*part) : Cell();
}

template<uint64_t Used::*part>
Cell used(const L& l, const C&)
{
    return counted(l, part);
}

// In byte-seconds: an hour of 80 GB fits, and so do ten years of a thousand of them.
Cell memory(const L& l, const C& c)
{
    if (!l.row || c.settings.cheap)
        return {};
    const uint128 all = l.row->account.used.byte_ns + l.row->tenant.elsewhere.byte_ns;
    return Cell(static_cast<uint64_t>(std::min<uint128>(all / 1'000'000'000, UINT64_MAX)));
}

template<uint64_t Used::*part>
Cell share_of_all(const L& l, const C&)
{
    if (!l.row || !(l.row->all.*part))
        return {};
    return Cell(100.0 * static_cast<double>(l.row->account.used.*part) / static_cast<double>(l.row->all.*part));
}

Cell memory_share(const L& l, const C& c)
{
    if (!l.row || !l.row->all.byte_ns || c.settings.cheap)
        return {};
    return Cell(100.0 * static_cast<double>(l.row->account.used.byte_ns) / static_cast<double>(l.row->all.byte_ns));
}

Cell used_time(const L& l, const C& c)
{
    return l.of == Of::total && is_on_devices(l, c) ? Cell(c.bill.used_ns) : figure(l, &Account::used_ns);
}

Cell idle_time(const L& l, const C& c)
{
    return l.of == Of::total && is_on_devices(l, c) ? Cell(c.bill.idle_ns) : figure(l, &Account::idle_ns);
}

// What the line has of the time of devices: over the lines of tenants, idle and unallocated it adds up to theirs.
Cell device_time(const L& l, const C& c)
{
    if (!is_on_devices(l, c))
        return {};
    switch (l.of) {
    case Of::tenant:
        return Cell(l.row->account.used_ns);
    case Of::idle:
        return Cell(c.bill.idle_ns);
    case Of::unallocated:
        return Cell(c.bill.unallocated_ns);
    default:
        return Cell(c.bill.ns);
    }
}

uint64_t micros_of(const L& l, const C& c)
{
    switch (l.of) {
    case Of::tenant:
        return l.row->used_micros;
    case Of::idle:
        return c.bill.idle_micros;
    case Of::unallocated:
        return c.bill.unallocated_micros;
    default:
        return c.bill.micros;
    }
}

bool has_price(const L& l, const C& c)
{
    return c.priced && is_on_devices(l, c) && (!l.row || !l.row->unpriced || l.row->used_micros || l.row->idle_micros);
}

Cell cost(const L& l, const C& c)
{
    return has_price(l, c) ? Cell(micros_of(l, c)) : Cell();
}

Cell idle_cost(const L& l, const C& c)
{
    if (!has_price(l, c) || l.of == Of::unallocated || l.of == Of::idle)
        return {};
    return Cell(l.row ? l.row->idle_micros : c.bill.idle_micros);
}

// As people read money; the column of a tool for programs has whole millionths.
Cell in_money(const Cell& micros, const C& c)
{
    const auto* const number = std::get_if<uint64_t>(&micros);
    return number ? Cell(money_text(*number, c.currency)) : Cell();
}

Cell in_time(const Cell& ns)
{
    const auto* const number = std::get_if<uint64_t>(&ns);
    return number ? Cell(time_text(*number)) : Cell();
}

Cell devices(const L& l, const C& c)
{
    if (!l.row)
        return l.of == Of::total ? Cell(uint64_t{c.bill.devices.size()}) : Cell();
    return Cell(uint64_t{l.row->devices.size()});
}

Cell ids(const L& l, const C&)
{
    if (!l.row || l.row->devices.empty())
        return {};
    std::string text;
    for (const auto& [id, model] : l.row->devices)
        text.append(text.empty() ? "" : ",").append(id);
    return Cell(text);
}

Cell model(const L& l, const C&)
{
    if (!l.row || l.row->devices.empty())
        return {};
    const std::string& first = l.row->devices.begin()->second;
    const bool same = std::ranges::all_of(l.row->devices, [&](const auto& item) { return item.second == first; });
    return same ? known(first) : Cell();
}

// Of its devices, as far as their models are known: names of AMD's begin so, whoever tells them (amd_devices.cpp).
Cell vendor(const L& l, const C&)
{
    std::set<std::string> all;
    if (l.row)
        for (const auto& [id, model] : l.row->devices)
            if (!model.empty())
                all.insert(model.starts_with("AMD ") ? "amd" : "nvidia");
    return all.empty() ? Cell() : Cell(all.size() > 1 ? "nvidia,amd" : *all.begin());
}

Cell sources(const L& l, const C&)
{
    return l.row ? known(held_by_text(l.row->account.sources)) : Cell();
}

// Of the devices that it held, while it launched there; also what others did on them meanwhile.
Cell mean(const L& l, Figure figure, double unit)
{
    const auto value = l.row ? l.row->account.efficiency.mean(figure) : std::nullopt;
    return value ? Cell(*value / unit) : Cell();
}

template<Figure figure>
Cell mean_percent(const L& l, const C&)
{
    return mean(l, figure, 1e4);
}

Shown where_measured(const C& c)
{
    return c.bill.measured ? Shown::both : Shown::json;
}

Cell shared(const L& l, const C&)
{
    return l.row && l.row->account.shared_ns ? Cell(std::string("shared")) : Cell();
}

const Field<C, L> fields[] = {
    {{"", "of", Unit::text}, json_only, [](const L& l, const C&) { return word(l.of); }},
    {{"POD", "", Unit::text, 32},
     [](const C& c) { return c.settings.rows.pod || c.settings.rows.container ? Shown::text : Shown::no; },
     pod_text},
    {{"NAMESPACE", "", Unit::text, 20},
     where_told_apart<&View::pod_namespace>,
     [](const L& l, const C& c) { return own_text(l, c, &Tenant::pod_namespace); }},
    {{"CONTAINER", "container", Unit::text, 20}, where_told_apart<&View::container>, of_tenant<&Tenant::container>},
    {{"TEAM", "team", Unit::text, 16},
     [](const C& c) { return c.settings.rows.team || !c.settings.teams.empty() ? Shown::both : Shown::no; },
     [](const L& l, const C& c) {
         return l.of == Of::tenant     ? known(l.key->tenant.team)
                : c.settings.rows.team ? own_text(l, c, &Tenant::team)
                                       : Cell();
     }},
    {{"USER", "user", Unit::text, 12},
     where_told_apart<&View::user>,
     [](const L& l, const C& c) { return own_text(l, c, &Tenant::user); }},
    {{"CGROUP", "cgroup", Unit::text, 40},
     where_told_apart<&View::cgroup>,
     [](const L& l, const C& c) { return own_text(l, c, &Tenant::cgroup); }},
    {{"PID", "pid", Unit::count, 7},
     where_told_apart<&View::pid>,
     [](const L& l, const C&) { return l.key && l.key->tenant.pid ? Cell(uint64_t{l.key->tenant.pid}) : Cell(); }},
    {{"COMM", "comm", Unit::text, 15},
     [](const C& c) { return c.settings.rows.pid || c.settings.rows.comm ? Shown::both : Shown::no; },
     [](const L& l, const C& c) { return own_text(l, c, &Tenant::comm); }},
    {{"", "namespace", Unit::text}, json_only, of_tenant<&Tenant::pod_namespace>},
    {{"", "pod", Unit::text}, json_only, of_tenant<&Tenant::pod>},
    {{"", "owner", Unit::text}, json_only, of_tenant<&Tenant::owner>},
    {{"", "pods", Unit::count},
     json_only,
     [](const L& l, const C&) {
         return l.row && !l.row->tenant.pods.empty() ? Cell(uint64_t{l.row->tenant.pods.size()}) : Cell();
     }},
    {{"DEVICE", "device", Unit::text, 14},
     where_told_apart<&View::device>,
     [](const L& l, const C& c) {
         const View& rows = c.settings.rows;
         const bool alone =
             !rows.pod && !rows.container && !rows.of_processes() && !rows.pod_namespace && !rows.cgroup && !rows.team;
         return l.key ? known(l.key->device) : alone ? pod_text(l, c) : Cell();
     }},
    {{"DEVICES", "devices", Unit::count, 7}, always, devices},
    {{"IDS", "device_ids", Unit::text, 40}, always, ids, extra},
    {{"MODEL", "model", Unit::text, 24}, always, model, extra},
    {{"", "vendor", Unit::text}, json_only, vendor},
    {{"TIME", "", Unit::text, 8},
     [](const C&) { return Shown::text; },
     [](const L& l, const C& c) { return in_time(device_time(l, c)); }},
    {{"", "device_time_ns", Unit::count}, json_only, device_time},
    {{"IDLE", "", Unit::text, 8},
     [](const C&) { return Shown::text; },
     [](const L& l, const C& c) { return in_time(idle_time(l, c)); }},
    {{"", "used_ns", Unit::count}, json_only, used_time},
    {{"", "idle_ns", Unit::count}, json_only, idle_time},
    {{"", "allocated_ns", Unit::count}, json_only, ns<&Account::allocated_ns>},
    {{"", "resident_ns", Unit::count}, json_only, ns<&Account::resident_ns>},
    {{"", "driving_ns", Unit::count}, json_only, ns<&Account::driving_ns>},
    {{"", "shared_ns", Unit::count}, json_only, ns<&Account::shared_ns>},
    {{"", "equally_ns", Unit::count}, json_only, ns<&Account::equally_ns>},
    {{"", "holding_ns", Unit::count},
     json_only,
     [](const L& l, const C&) { return l.row ? Cell(l.row->tenant.holding_ns) : Cell(); }},
    {{"", "quiet_ns", Unit::count},
     json_only,
     [](const L& l, const C&) { return l.row ? Cell(l.row->tenant.quiet_ns) : Cell(); }},
    {{"LAUNCHES", "launches", Unit::count, 9}, always, used<&Used::launches>},
    {{"GRAPHKERN", "graph_kernels", Unit::count, 9}, always, used<&Used::graph_kernels>, extra},
    {{"BYTES", "copy_bytes", Unit::bytes, 7}, always, used<&Used::bytes>},
    {{"WAIT(s)", "wait_ns", Unit::seconds, 10},
     [](const C& c) { return c.settings.cheap ? Shown::no : Shown::both; },
     used<&Used::wait_ns>},
    {{"BYTESEC", "memory_byte_seconds", Unit::bytes, 7}, always, memory, extra},
    {{"LAUNCH%", "launch_share_percent", Unit::percent, 7}, always, share_of_all<&Used::launches>},
    {{"BUSY%", "busy_share_percent", Unit::percent, 6}, always, share_of_all<&Used::busy_ns>},
    {{"MEM%", "memory_share_percent", Unit::percent, 6}, always, memory_share},
    {{"SMACT%", "sm_active_percent", Unit::percent, 6}, where_measured, mean_percent<Figure::sm_active>},
    {{"OCC%", "sm_occupancy_percent", Unit::percent, 6}, always, mean_percent<Figure::sm_occupancy>, extra},
    {{"TENSOR%", "tensor_active_percent", Unit::percent, 7}, where_measured, mean_percent<Figure::tensor_active>},
    {{"DRAM%", "dram_active_percent", Unit::percent, 6}, where_measured, mean_percent<Figure::dram_active>},
    {{"GPU%", "gpu_busy_percent", Unit::percent, 6}, always, mean_percent<Figure::gpu_busy>, extra},
    {{"FB", "memory_used_bytes", Unit::bytes, 7},
     always,
     [](const L& l, const C&) {
         const auto bytes = l.row ? l.row->account.efficiency.mean(Figure::memory_used) : std::nullopt;
         return bytes ? Cell(static_cast<uint64_t>(*bytes)) : Cell();
     },
     extra},
    {{"", "efficiency_shared_ns", Unit::count},
     json_only,
     [](const L& l, const C&) {
         return l.row && l.row->account.efficiency.sources ? Cell(l.row->account.efficiency.shared_ns) : Cell();
     }},
    {{"", "measured_by", Unit::text},
     json_only,
     [](const L& l, const C&) { return l.row ? known(measured_by_text(l.row->account.efficiency.sources)) : Cell(); }},
    {{"", "launches_on_unknown_device", Unit::count},
     json_only,
     [](const L& l, const C&) {
         return l.row && l.row->tenant.elsewhere.launches ? Cell(l.row->tenant.elsewhere.launches) : Cell();
     }},
    {{"", "split", Unit::text},
     json_only,
     [](const L& l, const C& c) {
         return l.row && l.row->account.shared_ns ? Cell(std::string(split_name(c.settings.split))) : Cell();
     }},
    {{"SHARED", "shared", Unit::text, 6}, always, shared},
    {{"COST", "", Unit::text, 9},
     [](const C& c) { return c.priced ? Shown::text : Shown::no; },
     [](const L& l, const C& c) { return in_money(cost(l, c), c); }},
    {{"", "cost_micros", Unit::count}, where_priced, cost},
    {{"IDLECOST", "", Unit::text, 9},
     [](const C& c) { return c.priced ? Shown::text : Shown::no; },
     [](const L& l, const C& c) { return in_money(idle_cost(l, c), c); }},
    {{"", "idle_cost_micros", Unit::count}, where_priced, idle_cost},
    {{"", "currency", Unit::text}, where_priced, [](const L&, const C& c) { return Cell(std::string(c.currency)); }},
    {{"OVERHEAD%", "probes_cpu_percent", Unit::percent, 9},
     always,
     [](const L& l, const C& c) { return l.of == Of::total && c.probes_percent ? Cell(*c.probes_percent) : Cell(); }},
    {{"OWN%", "own_cpu_percent", Unit::percent, 5},
     always,
     [](const L& l, const C& c) { return l.of == Of::total && c.own_percent ? Cell(*c.own_percent) : Cell(); },
     extra},
    {{"HELDBY", "held_by", Unit::text, 16}, always, sources},
};

} // namespace

void View::parse(std::string_view list)
{
    const std::pair<std::string_view, bool*> dimensions[] = {{"device", &device},
                                                             {"team", &team},
                                                             {"user", &user},
                                                             {"pid", &pid},
                                                             {"process", &pid},
                                                             {"comm", &comm},
                                                             {"container", &container},
                                                             {"pod", &pod},
                                                             {"namespace", &pod_namespace},
                                                             {"cgroup", &cgroup}};
    for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + 1) {
        end = list.find(',', at);
        const std::string_view name = list.substr(at, end - at);
        const auto* const found = std::ranges::find(dimensions, name, [](const auto& one) { return one.first; });
        if (found == std::end(dimensions))
            throw UsageError(
                fmt::format("--by takes {}, or several with commas, not '{}'{}", names, name, suggestion(name, names)));
        *found->second = true;
    }
}

void check_fields(const Options& options, const std::string& sort)
{
    std::vector<ColumnOnOffer> columns;
    std::string names;
    for (const auto& field : fields) {
        columns.push_back({field.column, !field.extra});
        names += fmt::format("{}, {}, ", field.column.header, field.column.key);
    }
    check_columns(options.columns, columns, {});
    if (std::ranges::none_of(fields, [&](const auto& field) { return field.is_called(sort); }))
        throw UsageError(fmt::format("there is no column '{}' to sort by (-s): give a header of the table, or a key of "
                                     "its rows in --json{}",
                                     sort, suggestion(sort, names)));
}

void print_bill(Output& output, const Context& context, const std::vector<std::string>& below)
{
    std::vector<const Field<C, L>*> shown;
    std::vector<Column> columns;
    const ColumnChoice choice(context.options.columns);
    for (const auto& field : fields) {
        const Shown where = field.shown(context);
        Column column = shown_column(field.column, where == Shown::no ? Shown::text : where);
        column.in_text =
            !column.header.empty() && choice.shows(column, where != Shown::no && column.in_text && !field.extra);
        shown.push_back(&field);
        columns.push_back(column);
    }
    const auto row = [&](const Line& line) {
        Row cells;
        for (const auto* field : shown)
            cells.push_back(field->value(line, context));
        return cells;
    };
    struct Ordered {
        double order;
        Row row;
    };
    std::vector<Ordered> lines;
    for (const auto& [key, one] : context.bill.rows) {
        const Line line{Of::tenant, &key, &one};
        Ordered ordered{static_cast<double>(one.account.used_ns + one.account.idle_ns), row(line)};
        for (size_t i = 0; i < shown.size(); i++)
            if (shown[i]->is_called(context.settings.sort) && !shown[i]->is_called("device_time_ns"))
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
            output.row(columns, row({Of::total}), {"notes", below});
        return;
    }
    for (const Of of : {Of::idle, Of::unallocated})
        output.row(columns, row({of}), {});
    output.row(columns, row({Of::total}), {"notes", below});
}

} // namespace gpusnoop::gpuspend
