// SPDX-License-Identifier: Apache-2.0
// The bill for a ledger: rows with time and cost. The costs of all rows for a device add up exactly to the cost of the
// device, in millionths of the currency's unit.
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
    std::string device; // id of the device; empty: the row covers all devices
    auto operator<=>(const BillKey&) const = default;
};

struct BillRow {
    Account account;
    TenantAccount tenant;
    std::map<std::string, std::string> devices; // models of the held devices, by id
    Used all;                                   // use of these devices by all holders, to compute the row's percentages
    uint64_t used_micros = 0, idle_micros = 0;  // cost of used and idle time, on devices with a price
    bool unpriced = false;                      // at least one device has no price
};

// Unallocated time of a device, and the cost of that time.
struct Unallocated {
    std::string model;
    uint64_t ns = 0, micros = 0;
    bool priced = false;
};

struct Bill {
    std::map<BillKey, BillRow> rows;
    uint64_t ns = 0, used_ns = 0, idle_ns = 0, unallocated_ns = 0; // sums over all devices
    uint64_t micros = 0, used_micros = 0, idle_micros = 0, unallocated_micros = 0;
    uint64_t covered_ns = 0;       // total time of the slices in the ledger, without times when gpuspend did not run
    std::set<std::string> devices; // ids of devices, without those of MIG instances
    std::set<std::string> unpriced_models;
    std::map<std::string, std::string> device_of;      // by id of a MIG instance: id of its device
    bool measured = false;                             // at least one device has efficiency counters
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
