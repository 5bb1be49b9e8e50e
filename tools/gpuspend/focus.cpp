// SPDX-License-Identifier: Apache-2.0
// Output in FOCUS 1.3 (FinOps Open Cost and Usage Specification). Our own columns (x_...) show values that FOCUS lacks.
// The output can be joined with the provider's invoice by ResourceId.
#include "base/clock.hpp"
#include "base/text.hpp"
#include "rows/field.hpp"
#include "tools/gpuspend/columns.hpp"

#include <fmt/format.h>
#include <vector>

namespace gpusnoop::gpuspend {
namespace {

constexpr double hour_ns = 3.6e12;

struct Charge {
    std::string device{}, model{};
    const BillKey* key = nullptr; // null: the charge is for unallocated time
    const BillRow* row = nullptr;
    std::string_view part{}; // "used", "idle", "unallocated"
    uint64_t ns = 0, micros = 0;
    bool priced = false;
};

using C = Context;

Shown always(const C&)
{
    return Shown::json;
}

Cell hours(uint64_t ns)
{
    return Cell(static_cast<double>(ns) / hour_ns);
}

// Formats value / unit exactly, with this number of decimal digits.
Cell decimal(uint64_t value, uint64_t unit, int digits)
{
    return Cell(fmt::format("{}.{:0{}}", value / unit, value % unit, digits));
}

Cell moment(uint64_t wall_ns)
{
    const auto seconds = static_cast<time_t>(wall_ns / 1'000'000'000);
    tm utc{};
    gmtime_r(&seconds, &utc);
    return Cell(fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                            utc.tm_hour, utc.tm_min, utc.tm_sec));
}

Cell tags(const Charge& l, const C&)
{
    if (!l.key)
        return {};
    const Tenant& tenant = l.key->tenant;
    std::string json = "{";
    for (const auto& [name, value] : {std::pair<std::string_view, const std::string&>("pod", tenant.pod),
                                      {"container", tenant.container},
                                      {"user", tenant.user},
                                      {"team", tenant.team}}) {
        if (value.empty())
            continue;
        json.append(json.size() > 1 ? "," : "").append("\"").append(name).append("\":");
        append_json_string(json, value);
    }
    return json.size() > 1 ? Cell(json + "}") : Cell();
}

template<uint64_t Used::*part>
Cell share(const Charge& l, const C&)
{
    if (!l.row || !(l.row->all.*part))
        return {};
    return Cell(static_cast<double>(l.row->account.used.*part) / static_cast<double>(l.row->all.*part));
}

// Mean of a utilization counter, from 0 to 1 and not in percent, like all shares in FOCUS.
template<Figure figure>
Cell mean(const Charge& l, const C&)
{
    const auto value = l.row && l.part == "used" ? l.row->account.efficiency.mean(figure) : std::nullopt;
    return value ? Cell(*value / 1e6) : Cell();
}

const Field<C, Charge> charge_fields[] = {
    {{"", "ChargePeriodStart", Unit::text}, always, [](const Charge&, const C& c) { return moment(c.since_ns); }},
    {{"", "ChargePeriodEnd", Unit::text}, always, [](const Charge&, const C& c) { return moment(c.wall_ns); }},
    {{"", "ChargeCategory", Unit::text}, always, [](const Charge&, const C&) { return Cell(std::string("Usage")); }},
    {{"", "ServiceCategory", Unit::text}, always, [](const Charge&, const C&) { return Cell(std::string("Compute")); }},
    {{"", "ResourceId", Unit::text}, always, [](const Charge& l, const C&) { return text_if_any(l.device); }},
    {{"", "ResourceName", Unit::text}, always, [](const Charge& l, const C&) { return text_if_any(l.model); }},
    {{"", "ResourceType", Unit::text}, always, [](const Charge&, const C&) { return Cell(std::string("GPU")); }},
    {{"", "ConsumedQuantity", Unit::text}, always, [](const Charge& l, const C&) { return hours(l.ns); }},
    {{"", "ConsumedUnit", Unit::text}, always, [](const Charge&, const C&) { return Cell(std::string("GPU-Hours")); }},
    {{"", "EffectiveCost", Unit::text},
     always,
     [](const Charge& l, const C&) { return l.priced ? decimal(l.micros, 1'000'000, 6) : Cell(); }},
    {{"", "BillingCurrency", Unit::text}, always, [](const Charge&, const C& c) { return text_if_any(c.currency); }},
    {{"", "SubAccountName", Unit::text},
     always,
     [](const Charge& l, const C&) { return l.key ? text_if_any(l.key->tenant.pod_namespace) : Cell(); }},
    {{"", "AllocatedResourceName", Unit::text},
     always,
     [](const Charge& l, const C&) { return l.key ? text_if_any(tenant_name(l.key->tenant)) : Cell(); }},
    {{"", "AllocatedMethodId", Unit::text},
     always,
     [](const Charge& l, const C& c) {
         return !l.row                      ? Cell()
                : !l.row->account.shared_ns ? Cell(std::string("whole"))
                                            : Cell(fmt::format("share of {}", split_name(c.settings.split)));
     }},
    {{"", "Tags", Unit::text}, always, tags},
    {{"", "x_Part", Unit::text}, always, [](const Charge& l, const C&) { return text_if_any(l.part); }},
    {{"", "x_Seconds", Unit::text}, always, [](const Charge& l, const C&) { return decimal(l.ns, 1'000'000'000, 9); }},
    {{"", "x_AllocatedGpuHours", Unit::text},
     always,
     [](const Charge& l, const C&) { return l.row ? hours(l.row->account.allocated_ns) : Cell(); }},
    {{"", "x_ResidentGpuHours", Unit::text},
     always,
     [](const Charge& l, const C&) { return l.row ? hours(l.row->account.resident_ns) : Cell(); }},
    {{"", "x_DrivingGpuHours", Unit::text},
     always,
     [](const Charge& l, const C&) { return l.row ? hours(l.row->account.driving_ns) : Cell(); }},
    {{"", "x_LaunchShare", Unit::text}, always, share<&Used::launches>},
    {{"", "x_BusySampleShare", Unit::text}, always, share<&Used::busy_ns>},
    {{"", "x_SmActive", Unit::text}, always, mean<Figure::sm_active>},
    {{"", "x_SmOccupancy", Unit::text}, always, mean<Figure::sm_occupancy>},
    {{"", "x_TensorActive", Unit::text}, always, mean<Figure::tensor_active>},
    {{"", "x_DramActive", Unit::text}, always, mean<Figure::dram_active>},
    {{"", "x_SharedSeconds", Unit::text},
     always,
     [](const Charge& l, const C&) { return l.row ? decimal(l.row->account.shared_ns, 1'000'000'000, 9) : Cell(); }},
    {{"", "x_Device", Unit::text},
     always,
     [](const Charge& l, const C& c) {
         const auto device = c.bill.device_of.find(l.device);
         return text_if_any(device == c.bill.device_of.end() ? l.device : device->second);
     }},
    {{"", "x_HeldBy", Unit::text},
     always,
     [](const Charge& l, const C&) { return l.row ? text_if_any(held_by_text(l.row->account.sources)) : Cell(); }},
};

} // namespace

void print_focus(Output& output, const Context& context)
{
    std::vector<Column> columns;
    for (const auto& field : charge_fields)
        columns.push_back(field.column);
    output.begin_table(columns, context.wall_ns, context.bill.covered_ns);
    const auto print = [&](const Charge& charge) {
        if (!charge.ns)
            return;
        Row row;
        for (const auto& field : charge_fields)
            row.push_back(field.value(charge, context));
        output.row(columns, row, {});
    };
    for (const auto& [key, row] : context.bill.rows) {
        if (key.device.empty())
            continue; // the device is not known
        Charge charge{.device = key.device,
                      .model = row.devices.begin()->second,
                      .key = &key,
                      .row = &row,
                      .part = "used",
                      .ns = row.account.used_ns,
                      .micros = row.used_micros,
                      .priced = !row.unpriced};
        print(charge);
        charge.part = "idle";
        charge.ns = row.account.idle_ns;
        charge.micros = row.idle_micros;
        print(charge);
    }
    for (const auto& [id, spare] : context.bill.unallocated_of)
        print({.device = id,
               .model = spare.model,
               .part = "unallocated",
               .ns = spare.ns,
               .micros = spare.micros,
               .priced = spare.priced});
}

} // namespace gpusnoop::gpuspend
