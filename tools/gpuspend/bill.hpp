// SPDX-License-Identifier: Apache-2.0
// A ledger in money, as rows: the parts of each device's price add up to it to the millionth.
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
    std::string device; // empty: of all devices
    auto operator<=>(const BillKey&) const = default;
};

// Of all who hold the devices of a row, for its shares.
struct BillRow {
    Account account;
    TenantAccount tenant;
    std::map<std::string, std::string> devices; // that it held: model by id
    Used all;                                   // by all who held them
    uint64_t used_micros = 0, idle_micros = 0;  // of devices that have a price
    bool unpriced = false;                      // some has none
};

// Of a device, what nobody was given.
struct Unallocated {
    std::string model;
    uint64_t ns = 0, micros = 0;
    bool priced = false;
};

struct Bill {
    std::map<BillKey, BillRow> rows;
    uint64_t ns = 0, used_ns = 0, idle_ns = 0, unallocated_ns = 0; // of all devices
    uint64_t micros = 0, used_micros = 0, idle_micros = 0, unallocated_micros = 0;
    uint64_t covered_ns = 0;                           // the time that was looked at
    std::set<std::string> devices, unpriced_models;    // without instances of MIG, which are parts of them
    std::map<std::string, std::string> device_of;      // of each instance
    bool measured = false;                             // somebody told how well some device was used
    std::map<std::string, Unallocated> unallocated_of; // by device
};

// by_device: rows tell devices apart.
Bill make_bill(const Ledger& ledger, bool by_device);

// Of those that hold and do not launch, the dearest first: "research/trainer-0 holds 2 GPUs for 8.0 h ($71), launched
// nothing for 7.1 h".
std::vector<std::string> sentences(const Bill& bill, const std::string& currency);
std::string tenant_name(const Tenant& tenant); // "-" where nothing is known
std::string time_text(uint64_t ns);            // "8.0 h", "12 min", "7.5 s"

} // namespace gpusnoop
