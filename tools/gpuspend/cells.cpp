// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/cells.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gpusnoop::gpuspend {

Cell kind_name(LineKind kind)
{
    constexpr std::string_view words[] = {"tenant", "idle", "unallocated", "total"};
    return Cell(std::string(words[static_cast<size_t>(kind)]));
}

Cell pod_text(const Line& l, const Context&)
{
    if (l.kind != LineKind::tenant)
        return Cell(fmt::format("({})", std::get<std::string>(kind_name(l.kind))));
    const Tenant& tenant = l.key->tenant;
    if (!tenant.pod.empty())
        return Cell(tenant.pod_namespace.empty() ? tenant.pod : tenant.pod_namespace + "/" + tenant.pod);
    return text_if_any(tenant.owner);
}

Cell own_text(const Line& l, const Context& c, std::string Tenant::*part)
{
    // Lines that are not about a tenant show their label, such as "(idle)", in the column POD or, if that is hidden,
    // here.
    const View& rows = c.settings.rows;
    if (l.kind != LineKind::tenant)
        return rows.pod || rows.container ? Cell() : pod_text(l, c);
    const std::string& text = l.key->tenant.*part;
    return text.empty() && !rows.pod && !rows.container ? text_if_any(l.key->tenant.owner) : text_if_any(text);
}

bool is_on_devices(const Line& l, const Context& c)
{
    return l.row ? !l.row->devices.empty() : !c.bill.devices.empty();
}

Cell figure(const Line& l, uint64_t Account::*part)
{
    return l.row && !l.row->devices.empty() ? Cell(l.row->account.*part) : Cell();
}

Cell counted(const Line& l, uint64_t Used::*part)
{
    return l.row ? Cell(l.row->account.used.*part + l.row->tenant.elsewhere.*part) : Cell();
}

Cell memory(const Line& l, const Context& c)
{
    if (!l.row || c.settings.cheap)
        return {};
    const uint128 all = l.row->account.used.byte_ns + l.row->tenant.elsewhere.byte_ns;
    return Cell(static_cast<uint64_t>(std::min<uint128>(all / 1'000'000'000, UINT64_MAX)));
}

Cell memory_share(const Line& l, const Context& c)
{
    if (!l.row || !l.row->all.byte_ns || c.settings.cheap)
        return {};
    return Cell(100.0 * static_cast<double>(l.row->account.used.byte_ns) / static_cast<double>(l.row->all.byte_ns));
}

Cell used_time(const Line& l, const Context& c)
{
    return l.kind == LineKind::total && is_on_devices(l, c) ? Cell(c.bill.used_ns) : figure(l, &Account::used_ns);
}

Cell idle_time(const Line& l, const Context& c)
{
    return l.kind == LineKind::total && is_on_devices(l, c) ? Cell(c.bill.idle_ns) : figure(l, &Account::idle_ns);
}

Cell device_time(const Line& l, const Context& c)
{
    if (!is_on_devices(l, c))
        return {};
    switch (l.kind) {
    case LineKind::tenant:
        return Cell(l.row->account.used_ns);
    case LineKind::idle:
        return Cell(c.bill.idle_ns);
    case LineKind::unallocated:
        return Cell(c.bill.unallocated_ns);
    default:
        return Cell(c.bill.ns);
    }
}

uint64_t micros_of(const Line& l, const Context& c)
{
    switch (l.kind) {
    case LineKind::tenant:
        return l.row->used_micros;
    case LineKind::idle:
        return c.bill.idle_micros;
    case LineKind::unallocated:
        return c.bill.unallocated_micros;
    default:
        return c.bill.micros;
    }
}

bool has_price(const Line& l, const Context& c)
{
    return c.priced && is_on_devices(l, c) && (!l.row || !l.row->unpriced || l.row->used_micros || l.row->idle_micros);
}

Cell cost(const Line& l, const Context& c)
{
    return has_price(l, c) ? Cell(micros_of(l, c)) : Cell();
}

Cell idle_cost(const Line& l, const Context& c)
{
    if (!has_price(l, c) || l.kind == LineKind::unallocated || l.kind == LineKind::idle)
        return {};
    return Cell(l.row ? l.row->idle_micros : c.bill.idle_micros);
}

Cell devices(const Line& l, const Context& c)
{
    if (!l.row)
        return l.kind == LineKind::total ? Cell(uint64_t{c.bill.devices.size()}) : Cell();
    return Cell(uint64_t{l.row->devices.size()});
}

Cell ids(const Line& l, const Context&)
{
    if (!l.row || l.row->devices.empty())
        return {};
    std::string text;
    for (const auto& [id, model] : l.row->devices)
        text.append(text.empty() ? "" : ",").append(id);
    return Cell(text);
}

Cell model(const Line& l, const Context&)
{
    if (!l.row || l.row->devices.empty())
        return {};
    const std::string& first = l.row->devices.begin()->second;
    const bool same = std::ranges::all_of(l.row->devices, [&](const auto& item) { return item.second == first; });
    return same ? text_if_any(first) : Cell();
}

Cell vendor(const Line& l, const Context&)
{
    std::set<std::string> all;
    if (l.row)
        for (const auto& [id, model] : l.row->devices)
            if (!model.empty())
                all.insert(model.starts_with("AMD ") ? "amd" : "nvidia");
    return all.empty() ? Cell() : Cell(all.size() > 1 ? "nvidia,amd" : *all.begin());
}

Cell sources(const Line& l, const Context&)
{
    return l.row ? text_if_any(held_by_text(l.row->account.sources)) : Cell();
}

Cell mean(const Line& l, Figure figure, double unit)
{
    const auto value = l.row ? l.row->account.efficiency.mean(figure) : std::nullopt;
    return value ? Cell(*value / unit) : Cell();
}

Cell shared(const Line& l, const Context&)
{
    return l.row && l.row->account.shared_ns ? Cell(std::string("shared")) : Cell();
}

} // namespace gpusnoop::gpuspend
