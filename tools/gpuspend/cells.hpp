// SPDX-License-Identifier: Apache-2.0
// What a line of the bill shows: its cells, which columns.cpp names.
#pragma once

#include "tools/gpuspend/columns.hpp"
#include "tools/gpuspend/prices.hpp"

#include <string>
#include <variant>

namespace gpusnoop::gpuspend {

// What a line is about: a tenant, the time that was held idle or unallocated, or the whole machine.
enum class Of : uint8_t { tenant, idle, unallocated, total };

struct Line {
    Of of = Of::tenant;
    const BillKey* key = nullptr;
    const BillRow* row = nullptr;
};

Cell word(Of of);

template<std::string Tenant::*part>
Cell of_tenant(const Line& l, const Context&)
{
    return l.key ? text_if_any(l.key->tenant.*part) : Cell();
}

// The first column of text names the line, whatever it is about.
Cell pod_text(const Line& l, const Context&);

Cell own_text(const Line& l, const Context& c, std::string Tenant::*part);

// Whether the line has device time: a tenant without a known device has none.
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

// In byte-seconds: an hour of 80 GB fits, and so do ten years of a thousand of them.
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

// What the line has of the time of devices: over the lines of tenants, idle and unallocated it adds up to theirs.
Cell device_time(const Line& l, const Context& c);

uint64_t micros_of(const Line& l, const Context& c);

bool has_price(const Line& l, const Context& c);

Cell cost(const Line& l, const Context& c);

Cell idle_cost(const Line& l, const Context& c);

// As people read money, and time.
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

// Of its devices, as far as their models are known: names of AMD's begin so, whoever tells them (amd_devices.cpp).
Cell vendor(const Line& l, const Context&);

Cell sources(const Line& l, const Context&);

// Of the devices that it held, while it launched there; also what others did on them meanwhile.
Cell mean(const Line& l, Figure figure, double unit);

template<Figure figure>
Cell mean_percent(const Line& l, const Context&)
{
    return mean(l, figure, 1e4);
}

Cell shared(const Line& l, const Context&);

} // namespace gpusnoop::gpuspend
