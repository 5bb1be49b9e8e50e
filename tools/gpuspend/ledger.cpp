// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/ledger.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

namespace gpusnoop {

std::vector<uint64_t> divided(uint64_t amount, std::span<const uint64_t> weights)
{
    std::vector<uint64_t> parts(weights.size());
    uint128 sum = 0;
    for (const uint64_t weight : weights)
        sum += weight;
    if (parts.empty())
        return parts;
    if (!sum)
        return divided(amount, std::vector<uint64_t>(weights.size(), 1));
    // Remainders may exceed 64 bits, because the sum of many weights does.
    std::vector<uint128> left(weights.size());
    uint64_t granted = 0;
    for (size_t i = 0; i < weights.size(); i++) {
        const uint128 product = uint128{amount} * weights[i];
        parts[i] = static_cast<uint64_t>(product / sum);
        left[i] = product % sum;
        granted += parts[i];
    }
    std::vector<size_t> order(weights.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return left[a] > left[b]; });
    for (size_t i = 0; granted < amount; i++, granted++)
        parts[order[i]]++;
    return parts;
}

std::string measured_by_text(uint8_t sources)
{
    const bool nvml = sources & MEASURED_BY_NVML, dcgm = sources & MEASURED_BY_DCGM;
    return nvml && dcgm ? "nvml,dcgm" : nvml ? "nvml" : dcgm ? "dcgm" : "";
}

void Gauges::set(Figure figure, std::optional<uint64_t> value, MeasuredBy source)
{
    std::optional<uint64_t>& known = values[static_cast<size_t>(figure)];
    if (!value || known)
        return;
    known = value;
    sources |= source;
}

void Gauges::set_percent(Figure figure, std::optional<double> percent, MeasuredBy source)
{
    if (percent && *percent >= 0 && *percent <= 100)
        set(figure, static_cast<uint64_t>(std::llround(*percent * 10'000)), source);
}

void add_efficiency(Gauges& gauges, const NvmlEfficiency& efficiency)
{
    gauges.set_percent(Figure::sm_active, efficiency.sm_active, MEASURED_BY_NVML);
    gauges.set_percent(Figure::sm_occupancy, efficiency.sm_occupancy, MEASURED_BY_NVML);
    gauges.set_percent(Figure::tensor_active, efficiency.tensor_active, MEASURED_BY_NVML);
    gauges.set_percent(Figure::dram_active, efficiency.dram_active, MEASURED_BY_NVML);
}

void Efficiency::add(const Gauges& gauges, uint64_t ns, bool shared)
{
    for (size_t i = 0; i < figure_count; i++)
        if (const auto value = gauges.values[i]) {
            figures[i].ns += ns;
            figures[i].sum += uint128{*value} * ns;
        }
    shared_ns += gauges.any() && shared ? ns : 0;
    sources |= gauges.sources;
}

void Efficiency::add(const Efficiency& more)
{
    for (size_t i = 0; i < figure_count; i++) {
        figures[i].ns += more.figures[i].ns;
        figures[i].sum += more.figures[i].sum;
    }
    shared_ns += more.shared_ns;
    sources |= more.sources;
}

std::optional<double> Efficiency::mean(Figure figure) const
{
    const auto& [ns, sum] = figures[static_cast<size_t>(figure)];
    return ns ? std::optional(static_cast<double>(sum) / static_cast<double>(ns)) : std::nullopt;
}

namespace {

const Tenant others{.owner = "(others)"};

uint64_t shortened(uint128 number)
{
    return static_cast<uint64_t>(std::min<uint128>(number, UINT64_MAX));
}

} // namespace

std::string held_by_text(uint8_t sources)
{
    constexpr std::array<std::string_view, 8> names = {"kubelet", "config", "environment", "context",
                                                       "file",    "calls",  "dra",         "slurm"};
    std::string text;
    for (size_t i = 0; i < names.size(); i++)
        if (sources & (1U << i))
            text.append(text.empty() ? "" : ",").append(names[i]);
    return text;
}

std::string_view split_name(SplitBy split)
{
    constexpr std::array<std::string_view, 3> names = {"launches", "busy", "memory"};
    return names[static_cast<size_t>(split)];
}

void Used::add(const Used& more)
{
    launches += more.launches;
    graph_kernels += more.graph_kernels;
    bytes += more.bytes;
    wait_ns += more.wait_ns;
    busy_ns += more.busy_ns;
    byte_ns += more.byte_ns;
}

void Account::add(const Account& more)
{
    used_ns += more.used_ns;
    idle_ns += more.idle_ns;
    allocated_ns += more.allocated_ns;
    resident_ns += more.resident_ns;
    driving_ns += more.driving_ns;
    shared_ns += more.shared_ns;
    equally_ns += more.equally_ns;
    sources |= more.sources;
    used.add(more.used);
    efficiency.add(more.efficiency);
}

void TenantAccount::add(const TenantAccount& more)
{
    elsewhere.add(more.elsewhere);
    holding_ns = std::max(holding_ns, more.holding_ns); // not the sum, because the times may overlap
    quiet_ns = std::max(quiet_ns, more.quiet_ns);
    devices += more.devices;
    for (const std::string& pod : more.pods)
        if (pods.size() < max_pods)
            pods.insert(pod);
}

// Weights for dividing a device's time between its holders. If no activity was counted, the weights are the numbers of
// allocated replicas or, without replicas, equal.
std::vector<uint64_t> Ledger::weights(const DeviceSlice& slice, bool& counted) const
{
    std::vector<uint64_t> by;
    for (const Holder& holder : slice.holders) {
        const Used& used = holder.used;
        by.push_back(split_ == SplitBy::launches ? used.launches + used.graph_kernels
                     : split_ == SplitBy::busy   ? used.busy_ns
                                                 : shortened(used.byte_ns >> 20));
    }
    counted = std::ranges::any_of(by, [](uint64_t weight) { return weight > 0; });
    if (!counted && std::ranges::all_of(slice.holders, [](const Holder& holder) { return holder.parts > 0; }))
        std::ranges::transform(slice.holders, by.begin(), &Holder::parts);
    return by;
}

void Ledger::add(const DeviceSlice& slice, uint64_t ns)
{
    DeviceAccount& device = devices_[slice.device];
    device.model = slice.model;
    device.parent = slice.parent;
    device.ns += ns;
    if (slice.holders.empty()) {
        device.unallocated_ns += ns;
        return;
    }
    // Free replicas count as unallocated time, although holders of the other replicas can use the whole device.
    const uint64_t granted = std::accumulate(slice.holders.begin(), slice.holders.end(), uint64_t{0},
                                             [](uint64_t sum, const Holder& holder) { return sum + holder.parts; });
    const uint64_t spare = granted && granted < slice.parts ? slice.parts - granted : 0;
    const uint64_t unallocated = spare ? divided(ns, std::array{granted, spare})[1] : 0;
    device.unallocated_ns += unallocated;
    bool counted = false;
    const std::vector<uint64_t> shares = divided(ns - unallocated, weights(slice, counted));
    for (size_t i = 0; i < slice.holders.size(); i++) {
        const Holder& holder = slice.holders[i];
        Account& account = device.tenants[room_for(holder.tenant)];
        (holder.active ? account.used_ns : account.idle_ns) += shares[i];
        account.driving_ns += holder.active ? ns : 0;
        if (holder.sources & held_by_grant)
            account.allocated_ns +=
                holder.parts ? shortened(uint128{ns} * holder.parts / std::max(slice.parts, holder.parts)) : ns;
        if (holder.sources & ~held_by_grant)
            account.resident_ns += ns;
        if (slice.holders.size() > 1) {
            account.shared_ns += shares[i];
            account.equally_ns += counted ? 0 : shares[i];
        }
        account.sources |= holder.sources;
        account.used.add(holder.used);
        if (holder.active)
            account.efficiency.add(slice.gauges, ns, slice.holders.size() > 1);
    }
}

const Tenant& Ledger::room_for(const Tenant& tenant) const
{
    return tenants_.size() < most_tenants || tenants_.contains(tenant) ? tenant : others;
}

void Ledger::add(const Slice& slice)
{
    ns_ += slice.ns;
    struct Holds {
        uint64_t devices = 0;
        bool active = false;
    };
    std::map<Tenant, Holds> holds;
    for (const DeviceSlice& device : slice.devices)
        for (const Holder& holder : device.holders) {
            Holds& one = holds[room_for(holder.tenant)];
            one.devices++;
            one.active |= holder.active;
        }
    for (const auto& [tenant, used] : slice.elsewhere) {
        TenantAccount& account = tenants_[room_for(tenant)];
        account.elsewhere.add(used);
        if (const auto found = holds.find(tenant); found != holds.end())
            found->second.active |= used.launched();
    }
    for (const auto& [tenant, one] : holds) {
        TenantAccount& account = tenants_[tenant];
        account.holding_ns += slice.ns;
        account.quiet_ns += one.active ? 0 : slice.ns;
        account.devices = std::max(account.devices, one.devices);
    }
    for (const DeviceSlice& device : slice.devices)
        add(device, device.ns.value_or(slice.ns));
}

void Ledger::add(const Ledger& more)
{
    ns_ += more.ns_;
    for (const auto& [key, from] : more.devices_) {
        DeviceAccount& to = devices_[key];
        to.model = from.model;
        to.parent = from.parent;
        to.ns += from.ns;
        to.unallocated_ns += from.unallocated_ns;
        for (const auto& [tenant, account] : from.tenants)
            to.tenants[room_for(tenant)].add(account);
    }
    for (const auto& [tenant, from] : more.tenants_) {
        TenantAccount& to = tenants_[room_for(tenant)];
        const uint64_t holding = to.holding_ns + from.holding_ns, quiet = to.quiet_ns + from.quiet_ns;
        const uint64_t devices = std::max(to.devices, from.devices);
        to.add(from);
        to.holding_ns = holding; // a sum, because the ledgers cover different times
        to.quiet_ns = quiet;
        to.devices = devices;
    }
}

void Ledger::saw_pod(const Tenant& tenant, const std::string& uid)
{
    const auto found = tenants_.find(tenant);
    if (found != tenants_.end() && found->second.pods.size() < TenantAccount::max_pods)
        found->second.pods.insert(uid);
}

} // namespace gpusnoop
