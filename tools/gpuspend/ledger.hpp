// SPDX-License-Identifier: Apache-2.0
// Divides the time of devices between their holders, one slice of time after the other. The used, idle and unallocated
// time of a device add up exactly to the device's time.
#pragma once

#include "gpu/nvml.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

__extension__ typedef unsigned __int128 uint128; // holds products of 64-bit numbers; not in ISO C++

// Divides an amount in proportion to the weights, such that the parts add up to it exactly. Units that remain after
// rounding down go to the parts with the largest remainders. If all weights are 0, the parts are equal.
std::vector<uint64_t> divided(uint64_t amount, std::span<const uint64_t> weights);

// Measures of a device's utilization, from its hardware counters.
enum class Figure : uint8_t { sm_active, sm_occupancy, tensor_active, dram_active, gpu_busy, memory_used };
constexpr size_t figure_count = 6;

// Sources of these measures; a bit mask.
enum MeasuredBy : uint8_t { MEASURED_BY_NVML = 1, MEASURED_BY_DCGM = 2 };
std::string measured_by_text(uint8_t sources); // "nvml,dcgm"

// Current values: ratios in millionths, memory in bytes. A value is nullopt if it is not known.
struct Gauges {
    std::array<std::optional<uint64_t>, figure_count> values;
    uint8_t sources = 0; // enum MeasuredBy

    bool any() const { return sources != 0; }
    void set(Figure figure, std::optional<uint64_t> value, MeasuredBy source); // does not replace a known value
    void set_percent(Figure figure, std::optional<double> percent, MeasuredBy source);
};

// Adds the values that NVML reports for a device or MIG instance to its gauges.
void add_efficiency(Gauges& gauges, const NvmlEfficiency& efficiency);

// Time-weighted means of gauges. Each mean covers the time for which its gauge is known.
struct Efficiency {
    struct Measured {
        uint64_t ns = 0; // time for which the value is known
        uint128 sum = 0; // sum of value times duration
    };
    std::array<Measured, figure_count> figures;
    uint64_t shared_ns = 0; // time in which the device also had other holders
    uint8_t sources = 0;

    void add(const Gauges& gauges, uint64_t ns, bool shared);
    void add(const Efficiency& more);
    std::optional<double> mean(Figure figure) const; // in the units of Gauges
};

// A holder of devices. Sums are kept by its id. Output uses its names, which may become known later.
struct Tenant {
    std::string id{};
    uint32_t pid = 0;
    uint64_t start_ns = 0;
    std::string pod_namespace{}, pod{}, container{}, user{}, comm{}, cgroup{}, team{}, owner{};
    auto operator<=>(const Tenant&) const = default;
};

// Sources that report a tenant as a holder of a device; a bit mask.
enum HeldBy : uint8_t {
    HELD_BY_KUBELET = 1,     // allocated to the running container by the kubelet's device manager
    HELD_BY_CONFIG = 2,      // the container's configuration has the device's file
    HELD_BY_ENVIRONMENT = 4, // listed in NVIDIA_VISIBLE_DEVICES, in the container's configuration or in the process's
                             // environment
    HELD_BY_CONTEXT = 8,     // the driver reports that the process has a context on the device
    HELD_BY_FILE = 16,       // the process has this device's file open, and the file of no other device
    HELD_BY_CALLS = 32,      // the process makes calls for the device
    HELD_BY_DRA = 64,        // prepared for a resource claim of the running pod
    HELD_BY_SLURM = 128,     // allocated to the job by Slurm
};
// "kubelet,context"
std::string held_by_text(uint8_t sources);
// Sources that report an allocation even if the device is not used.
constexpr uint8_t held_by_grant = HELD_BY_KUBELET | HELD_BY_CONFIG | HELD_BY_ENVIRONMENT | HELD_BY_DRA | HELD_BY_SLURM;

enum class SplitBy : uint8_t { launches, busy, memory };
std::string_view split_name(SplitBy split);

struct Used {
    uint64_t launches = 0, graph_kernels = 0, bytes = 0, wait_ns = 0;
    uint64_t busy_ns = 0; // busy time of the holder's processes, as sampled by the driver
    uint128 byte_ns = 0;  // bytes of memory held, multiplied by the time in ns

    void add(const Used& more);
    bool launched() const { return launches || busy_ns; }
};

struct Holder {
    Tenant tenant{};
    uint64_t parts = 0; // number of allocated replicas of the device; 0: no allocation is known
    uint8_t sources = 0;
    Used used{};
    bool active = false; // true if the holder may have launched work on the device in this slice
};

struct DeviceKey {
    std::string id;
    std::optional<uint64_t> price; // millionths per hour; a new price starts a new account
    auto operator<=>(const DeviceKey&) const = default;
};

// One device in a slice of time.
struct DeviceSlice {
    DeviceKey device;
    std::string model;
    std::string parent{}; // for a MIG instance: id of its device; otherwise empty
    uint64_t parts = 1;   // number of replicas of the device
    std::vector<Holder> holders;
    Gauges gauges{};
    std::optional<uint64_t> ns = {}; // time to divide between the holders; nullopt: Slice::ns
};

struct Slice {
    uint64_t ns = 0;
    std::vector<DeviceSlice> devices;
    std::map<Tenant, Used> elsewhere; // use of unknown devices
};

struct Account {
    uint64_t used_ns = 0;      // the tenant's share of the device's time while the tenant launched work on the device
    uint64_t idle_ns = 0;      // the tenant's share of the device's time while the tenant held it but launched nothing
    uint64_t allocated_ns = 0; // time in which the device was allocated to the tenant, times the tenant's
                               // share of its replicas
    uint64_t resident_ns = 0;  // time in which the tenant had a context, had the device's file open, or made calls
    uint64_t driving_ns = 0;   // time in which the tenant launched work on the device
    uint64_t shared_ns = 0;    // part of used_ns and idle_ns in which other tenants held the device, too
    uint64_t equally_ns = 0;   // part of shared_ns divided equally, because no activity was counted
    uint8_t sources = 0;
    Used used;
    Efficiency efficiency; // utilization of the device while the tenant launched

    void add(const Account& more);
};

struct DeviceAccount {
    std::string model;
    std::string parent{}; // as in DeviceSlice
    uint64_t ns = 0, unallocated_ns = 0;
    std::map<Tenant, Account> tenants;
};

// Sums of a tenant over all devices.
struct TenantAccount {
    Used elsewhere;
    uint64_t holding_ns = 0, quiet_ns = 0; // time during which the tenant held a device, and the part of this time in
                                           // which it launched nothing
    uint64_t devices = 0;                  // maximum number of devices held at once
    std::set<std::string> pods;            // uids of pods with the tenant's name, at most max_pods

    static constexpr size_t max_pods = 1024;
    void add(const TenantAccount& more);
};

class Ledger {
public:
    explicit Ledger(SplitBy split = SplitBy::launches) : split_(split) {}

    void add(const Slice& slice);
    // A copy with tenants replaced by name(tenant). Tenants with equal names are merged.
    template<class Name>
    Ledger named(Name&& name) const
    {
        Ledger all(split_);
        for (const auto& [key, device] : devices_) {
            DeviceAccount& to = all.devices_[key];
            to = {device.model, device.parent, device.ns, device.unallocated_ns, {}};
            for (const auto& [tenant, account] : device.tenants)
                to.tenants[name(tenant)].add(account);
        }
        for (const auto& [tenant, account] : tenants_)
            all.tenants_[name(tenant)].add(account);
        all.ns_ = ns_;
        return all;
    }
    void add(const Ledger& more);
    void saw_pod(const Tenant& tenant, const std::string& uid);

    SplitBy split() const { return split_; }
    uint64_t ns() const { return ns_; } // total time of all slices
    const std::map<DeviceKey, DeviceAccount>& devices() const { return devices_; }
    const std::map<Tenant, TenantAccount>& tenants() const { return tenants_; }
    // Tenants beyond this number are merged into one, called "(others)".
    static constexpr size_t most_tenants = 16'384;

private:
    friend class SpendState;
    std::vector<uint64_t> weights(const DeviceSlice& slice, bool& counted) const;
    void add(const DeviceSlice& slice, uint64_t ns);
    const Tenant& room_for(const Tenant& tenant) const;

    SplitBy split_;
    uint64_t ns_ = 0;
    std::map<DeviceKey, DeviceAccount> devices_;
    std::map<Tenant, TenantAccount> tenants_;
};

} // namespace gpusnoop
