// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/bill.hpp"

#include "tools/gpuspend/prices.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {
namespace {

constexpr uint64_t hour_ns = 3'600'000'000'000;
constexpr size_t max_sentences = 5;

uint64_t price_of(uint64_t ns, uint64_t micros_per_hour)
{
    return static_cast<uint64_t>((uint128{ns} * micros_per_hour + hour_ns / 2) / hour_ns);
}

// The device's unallocated time, followed by each tenant's used time and idle time.
std::vector<uint64_t> parts_of(const DeviceAccount& device)
{
    std::vector<uint64_t> parts{device.unallocated_ns};
    for (const auto& [tenant, account] : device.tenants) {
        parts.push_back(account.used_ns);
        parts.push_back(account.idle_ns);
    }
    return parts;
}

} // namespace

// The cost of each device and MIG instance. A GPU with MIG has several accounts: one for the whole device, and one for
// each instance. The GPU's total cost is divided between these accounts in proportion to their time.
static std::map<DeviceKey, uint64_t> prices_of(const Ledger& ledger)
{
    struct Whole {
        std::vector<DeviceKey> keys;
        std::vector<uint64_t> ns;
        uint64_t all_ns = 0;
    };
    std::map<DeviceKey, Whole> wholes;
    for (const auto& [key, device] : ledger.devices()) {
        Whole& whole = wholes[{device.parent.empty() ? key.id : device.parent, key.price}];
        whole.keys.push_back(key);
        whole.ns.push_back(device.ns);
        whole.all_ns += device.ns;
    }
    std::map<DeviceKey, uint64_t> prices;
    for (const auto& [key, whole] : wholes) {
        if (!key.price || !whole.all_ns)
            continue;
        const std::vector<uint64_t> parts = divided(price_of(whole.all_ns, *key.price), whole.ns);
        for (size_t i = 0; i < parts.size(); i++)
            prices[whole.keys[i]] = parts[i];
    }
    return prices;
}

Bill make_bill(const Ledger& ledger, bool by_device)
{
    const std::map<DeviceKey, uint64_t> prices = prices_of(ledger);
    Bill bill;
    bill.covered_ns = ledger.ns();
    for (const auto& [key, device] : ledger.devices()) {
        const auto priced = prices.find(key);
        const uint64_t price = priced == prices.end() ? 0 : priced->second;
        std::vector<uint64_t> money(1 + 2 * device.tenants.size());
        if (device.ns)
            money = divided(price, parts_of(device));
        if (!key.price)
            bill.unpriced_models.insert(device.model);
        bill.devices.insert(device.parent.empty() ? key.id : device.parent);
        if (!device.parent.empty())
            bill.device_of[key.id] = device.parent;
        bill.ns += device.ns;
        bill.micros += price;
        bill.unallocated_ns += device.unallocated_ns;
        bill.unallocated_micros += money[0];
        Unallocated& spare = bill.unallocated_of[key.id];
        spare.model = device.model;
        spare.ns += device.unallocated_ns;
        spare.micros += money[0];
        spare.priced |= key.price.has_value();
        if (by_device && device.tenants.empty())
            bill.rows[{{}, key.id}].devices[key.id] = device.model; // a device without tenants also gets a row
        Used all;
        for (const auto& [tenant, account] : device.tenants)
            all.add(account.used);
        size_t at = 1;
        for (const auto& [tenant, account] : device.tenants) {
            BillRow& row = bill.rows[{tenant, by_device ? key.id : std::string()}];
            row.account.add(account);
            bill.measured |= account.efficiency.sources != 0;
            row.devices[key.id] = device.model;
            row.all.add(all);
            row.unpriced |= !key.price;
            row.used_micros += money[at];
            row.idle_micros += money[at + 1];
            bill.used_ns += account.used_ns;
            bill.idle_ns += account.idle_ns;
            bill.used_micros += money[at];
            bill.idle_micros += money[at + 1];
            at += 2;
        }
    }
    for (const auto& [tenant, account] : ledger.tenants()) {
        if (!by_device || account.elsewhere.launches || account.elsewhere.bytes || account.elsewhere.wait_ns ||
            account.elsewhere.byte_ns)
            bill.rows[{tenant, {}}].tenant = account;
        for (auto row = bill.rows.upper_bound({tenant, {}}); row != bill.rows.end() && row->first.tenant == tenant;
             ++row) {
            row->second.tenant = account;
            row->second.tenant.elsewhere = {};
        }
    }
    return bill;
}

std::string tenant_name(const Tenant& tenant)
{
    std::string name = tenant.pod.empty() || tenant.pod_namespace.empty() ? tenant.pod + tenant.pod_namespace
                                                                          : tenant.pod_namespace + "/" + tenant.pod;
    if (!tenant.container.empty())
        name += (name.empty() ? "" : "/") + tenant.container;
    for (const std::string* other : {&tenant.owner, &tenant.user, &tenant.comm, &tenant.cgroup, &tenant.team})
        if (name.empty())
            name = *other;
    if (tenant.pid)
        name = name.empty() ? fmt::format("process {}", tenant.pid) : fmt::format("{} ({})", name, tenant.pid);
    return name.empty() ? "-" : name;
}

std::string time_text(uint64_t ns)
{
    const double seconds = static_cast<double>(ns) / 1e9;
    return seconds < 60     ? fmt::format("{:.1f} s", seconds)
           : seconds < 3600 ? fmt::format("{:.1f} min", seconds / 60)
                            : fmt::format("{:.1f} h", seconds / 3600);
}

std::vector<std::string> sentences(const Bill& bill, const std::string& currency)
{
    struct Idle {
        uint64_t micros, ns;
        std::string text;
    };
    std::vector<Idle> found;
    for (const auto& [key, row] : bill.rows) {
        const TenantAccount& tenant = row.tenant;
        // Report only tenants that launched nothing for at least half of the time.
        if (key.tenant == Tenant() || tenant.quiet_ns == 0 || tenant.quiet_ns * 2 < tenant.holding_ns)
            continue;
        const uint64_t micros = row.used_micros + row.idle_micros;
        found.push_back({row.idle_micros, row.account.idle_ns,
                         fmt::format("{} held {} GPU{} for {}{} and launched nothing for {}", tenant_name(key.tenant),
                                     tenant.devices, tenant.devices == 1 ? "" : "s", time_text(tenant.holding_ns),
                                     row.unpriced ? "" : fmt::format(" ({})", money_text(micros, currency)),
                                     time_text(tenant.quiet_ns))});
    }
    std::ranges::stable_sort(
        found, [](const Idle& a, const Idle& b) { return a.micros != b.micros ? a.micros > b.micros : a.ns > b.ns; });
    std::vector<std::string> lines;
    for (Idle& idle : found)
        if (lines.size() < max_sentences)
            lines.push_back(std::move(idle.text));
    if (found.size() > max_sentences)
        lines.push_back(fmt::format("and {} more, which held GPUs and launched nothing for at least half of the time",
                                    found.size() - max_sentences));
    return lines;
}

} // namespace gpusnoop
