// SPDX-License-Identifier: Apache-2.0
// The bill for a ledger: rows with time and cost. The costs of the parts of a device's time add up to the device's
// cost, to the millionth.
#pragma once

#include "tools/gpuspend/ledger.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gpusnoop {

struct BillKey {
    Tenant tenant;
    std::string device; // empty: all devices
    auto operator<=>(const BillKey&) const = default;
};

struct BillRow {
    Account account;
    TenantAccount tenant;
    std::map<std::string, std::string> devices; // held devices: model by id
    Used all;                                   // use by all holders of these devices, to compute the row's shares
    uint64_t used_micros = 0, idle_micros = 0;  // cost of devices with a price
    bool unpriced = false;                      // some devices have no price
};

// The unallocated time of a device, and its cost.
struct Unallocated {
    std::string model;
    uint64_t ns = 0, micros = 0;
    bool priced = false;
};

struct Bill {
    std::map<BillKey, BillRow> rows;
    uint64_t ns = 0, used_ns = 0, idle_ns = 0, unallocated_ns = 0; // sums over all devices
    uint64_t micros = 0, used_micros = 0, idle_micros = 0, unallocated_micros = 0;
    uint64_t covered_ns = 0;       // observed time
    std::set<std::string> devices; // without MIG instances, which are parts of devices
    std::set<std::string> unpriced_models;
    std::map<std::string, std::string> device_of;      // the device of each MIG instance
    bool measured = false;                             // some device has efficiency counters
    std::map<std::string, Unallocated> unallocated_of; // by device id
};

// by_device: one row per tenant and device.
Bill make_bill(const Ledger& ledger, bool by_device);

// Sentences about tenants that hold GPUs without launching, the most expensive first: "research/trainer-0 held 2 GPUs
// for 8.0 h ($71.00) and launched nothing for 7.1 h".
std::vector<std::string> sentences(const Bill& bill, const std::string& currency);
std::string tenant_name(const Tenant& tenant); // "-" if nothing is known
std::string time_text(uint64_t ns);            // "8.0 h", "12 min", "7.5 s"

} // namespace gpusnoop
