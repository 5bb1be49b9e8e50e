// SPDX-License-Identifier: Apache-2.0
// Cells for the lines of a bill. columns.cpp has the columns.
#pragma once

#include "tools/gpuspend/columns.hpp"
#include "tools/gpuspend/prices.hpp"

#include <string>
#include <variant>

namespace gpusnoop::gpuspend {

// Subject of a line: a tenant, idle time, unallocated time, or the whole machine.
enum class LineKind : uint8_t { tenant, idle, unallocated, total };

struct Line {
    LineKind kind = LineKind::tenant;
    const BillKey* key = nullptr;
    const BillRow* row = nullptr;
};

Cell kind_name(LineKind kind);

template<std::string Tenant::*part>
Cell of_tenant(const Line& l, const Context&)
{
    return l.key ? text_if_any(l.key->tenant.*part) : Cell();
}

// The label of a line, shown in the first column of text output: a pod, an owner, or "(idle)".
Cell pod_text(const Line& l, const Context&);

Cell own_text(const Line& l, const Context& c, std::string Tenant::*part);

// True if the line has device time. A tenant whose devices are unknown has none.
bool is_on_devices(const Line& l, const Context& c);

Cell figure(const Line& l, uint64_t Account::*part);

template<uint64_t Account::*part>
Cell ns(const Line& l, const Context&)
{
    return figure(l, part);
}

Cell counted(const Line& l, uint64_t Used::*part);

template<uint64_t Used::*part>
Cell used(const Line& l, const Context&)
{
    return counted(l, part);
}

// Memory use in byte-seconds. 64 bits suffice for seven years of one full GPU with 80 GB. Larger values are capped.
Cell memory(const Line& l, const Context& c);

template<uint64_t Used::*part>
Cell share_of_all(const Line& l, const Context&)
{
    if (!l.row || !(l.row->all.*part))
        return {};
    return Cell(100.0 * static_cast<double>(l.row->account.used.*part) / static_cast<double>(l.row->all.*part));
}

Cell memory_share(const Line& l, const Context& c);

Cell used_time(const Line& l, const Context& c);

Cell idle_time(const Line& l, const Context& c);

// Device time of the line. The total is the sum of the lines for tenants, idle time and unallocated time.
Cell device_time(const Line& l, const Context& c);

uint64_t micros_of(const Line& l, const Context& c);

bool has_price(const Line& l, const Context& c);

Cell cost(const Line& l, const Context& c);

Cell idle_cost(const Line& l, const Context& c);

// Cells with money or time as text.
template<Cell (*micros)(const Line&, const Context&)>
Cell in_money(const Line& l, const Context& c)
{
    const Cell cell = micros(l, c);
    const auto* const number = std::get_if<uint64_t>(&cell);
    return number ? Cell(money_text(*number, c.currency)) : Cell();
}

template<Cell (*ns)(const Line&, const Context&)>
Cell in_time(const Line& l, const Context& c)
{
    const Cell cell = ns(l, c);
    const auto* const number = std::get_if<uint64_t>(&cell);
    return number ? Cell(time_text(*number)) : Cell();
}

Cell devices(const Line& l, const Context& c);

Cell ids(const Line& l, const Context&);

Cell model(const Line& l, const Context&);

// Vendors of the line's devices, as far as their models are known. Model names of AMD devices begin with "AMD "
// (amd_devices.cpp).
Cell vendor(const Line& l, const Context&);

Cell sources(const Line& l, const Context&);

// Mean of a counter over the held devices, while the tenant launched work on them. The counter includes the work of
// other holders.
Cell mean(const Line& l, Figure figure, double unit);

template<Figure figure>
Cell mean_percent(const Line& l, const Context&)
{
    return mean(l, figure, 1e4);
}

Cell shared(const Line& l, const Context&);

} // namespace gpusnoop::gpuspend
