// SPDX-License-Identifier: Apache-2.0
// The time of devices, shared out between those who held them: slice by slice, so that of each device what was used,
// what was held idle and what was not given to anybody add up to its time to the nanosecond.
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

// An amount, divided so that the parts add up to it exactly: time and money are shared out in whole units.
__extension__ typedef unsigned __int128 uint128; // of products: ISO C++ has none so wide

// In proportion to the weights; what is left of whole units goes to the largest remainders, the first of equal ones
// first. Without any weight, in equal parts. Empty: there is nobody to share.
std::vector<uint64_t> divided(uint64_t amount, std::span<const uint64_t> weights);

// How well a device was used, by its own counters: means over the time for which somebody told them.
enum class Figure : uint8_t { sm_active, sm_occupancy, tensor_active, dram_active, gpu_busy, memory_used };
constexpr size_t figure_count = 6;

// Who tells. Of several, all count.
enum MeasuredBy : uint8_t { MEASURED_BY_NVML = 1, MEASURED_BY_DCGM = 2 };
std::string measured_by_text(uint8_t sources); // "nvml,dcgm"

// At one time: millionths of what is there; of memory, bytes. nullopt: nobody tells.
struct Gauges {
    std::array<std::optional<uint64_t>, figure_count> values;
    uint8_t sources = 0; // enum MeasuredBy

    bool any() const { return sources != 0; }
    void set(Figure figure, std::optional<uint64_t> value, MeasuredBy source); // unless it is known already
    void set_percent(Figure figure, std::optional<double> percent, MeasuredBy source);
};

// What NVML says of the hardware, of a device or of an instance.
void add_efficiency(Gauges& gauges, const NvmlEfficiency& efficiency);

// Over some time.
struct Efficiency {
    struct Measured {
        uint64_t ns = 0; // for which it was told
        uint128 sum = 0; // value times how long
    };
    std::array<Measured, figure_count> figures;
    uint64_t shared_ns = 0; // of the time, others held the device, too: it is not its holder's alone
    uint8_t sources = 0;

    void add(const Gauges& gauges, uint64_t ns, bool shared);
    void add(const Efficiency& more);
    std::optional<double> mean(Figure figure) const; // in the units of Gauges
};

// Who holds. While it is counted an id, and what it is called where it is shown: names may come later.
struct Tenant {
    std::string id{};
    uint32_t pid = 0;
    uint64_t start_ns = 0;
    std::string pod_namespace{}, pod{}, container{}, user{}, comm{}, cgroup{}, team{}, owner{};
    auto operator<=>(const Tenant&) const = default;
};

// Who says that somebody holds a device. Of several, all count.
enum HeldBy : uint8_t {
    HELD_BY_KUBELET = 1,     // its device manager has given it to a container that lives
    HELD_BY_CONFIG = 2,      // the container's configuration has the device's file
    HELD_BY_ENVIRONMENT = 4, // NVIDIA_VISIBLE_DEVICES of the container's configuration, or of the process, names it
    HELD_BY_CONTEXT = 8,     // the driver lists the process among those with a context
    HELD_BY_FILE = 16,       // the process has this device's file open, and no other's
    HELD_BY_CALLS = 32,      // its calls are for it
    HELD_BY_DRA = 64,        // a claim of its pod that lives has it
    HELD_BY_SLURM = 128,     // it is of a job that Slurm has given it to
};
// "kubelet,context"
std::string held_by_text(uint8_t sources);
// It was given, whether it is used or not.
constexpr uint8_t held_by_grant = HELD_BY_KUBELET | HELD_BY_CONFIG | HELD_BY_ENVIRONMENT | HELD_BY_DRA | HELD_BY_SLURM;

enum class SplitBy : uint8_t { launches, busy, memory };
std::string_view split_name(SplitBy split);

struct Used {
    uint64_t launches = 0, graph_kernels = 0, bytes = 0, wait_ns = 0;
    uint64_t busy_ns = 0; // by the driver's samples of its processes: their percentage of the time
    uint128 byte_ns = 0;  // memory held, by how long

    void add(const Used& more);
    bool launched() const { return launches || busy_ns; }
};

struct Holder {
    Tenant tenant{};
    uint64_t parts = 0; // that it was given of the device; 0: nobody says that it was
    uint8_t sources = 0;
    Used used{};
    bool active = false; // it may have launched something there
};

struct DeviceKey {
    std::string id;
    std::optional<uint64_t> price; // millionths per hour: another price is another account
    auto operator<=>(const DeviceKey&) const = default;
};

// One device in a slice of time.
struct DeviceSlice {
    DeviceKey device;
    std::string model;
    std::string of{};   // a MIG instance: the device that it is a part of
    uint64_t parts = 1; // that it is given out in
    std::vector<Holder> holders;
    Gauges gauges{};                 // of it, meanwhile
    std::optional<uint64_t> ns = {}; // of the slice's time, its part: of MIG's instances; nullopt: all of it
};

struct Slice {
    uint64_t ns = 0;
    std::vector<DeviceSlice> devices;
    std::map<Tenant, Used> elsewhere; // what was used, nobody knows on which device
};

struct Account {
    uint64_t used_ns = 0, idle_ns = 0; // its share of the device's time: while it launched, and while it did not
    uint64_t allocated_ns = 0;         // it was given the device: as many times as it has parts of it
    uint64_t resident_ns = 0;          // it had a context there, or the file open
    uint64_t driving_ns = 0;           // it launched
    uint64_t shared_ns = 0;            // of its share: others held the device, too
    uint64_t equally_ns = 0;           // of that: divided equally, as nothing was counted to divide by
    uint8_t sources = 0;
    Used used;
    Efficiency efficiency; // of the device, while it launched

    void add(const Account& more);
};

struct DeviceAccount {
    std::string model;
    std::string of{}; // as in DeviceSlice
    uint64_t ns = 0, unallocated_ns = 0;
    std::map<Tenant, Account> tenants;
};

// Of a tenant, whatever the device.
struct TenantAccount {
    Used elsewhere;
    uint64_t holding_ns = 0, quiet_ns = 0; // it held some device; and launched nothing on any of them
    uint64_t devices = 0;                  // held at once, at most
    std::set<std::string> pods;            // of this name: uids, at most most_pods

    static constexpr size_t most_pods = 1024;
    void add(const TenantAccount& more);
};

class Ledger {
public:
    explicit Ledger(SplitBy split = SplitBy::launches) : split_(split) {}

    void add(const Slice& slice);
    // The same, under the names that name(tenant) gives: those with one name are one from here on.
    template<class Name>
    Ledger named(Name&& name) const
    {
        Ledger all(split_);
        for (const auto& [key, device] : devices_) {
            DeviceAccount& to = all.devices_[key];
            to = {device.model, device.of, device.ns, device.unallocated_ns, {}};
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
    uint64_t ns() const { return ns_; } // that slices covered
    const std::map<DeviceKey, DeviceAccount>& devices() const { return devices_; }
    const std::map<Tenant, TenantAccount>& tenants() const { return tenants_; }
    // Tenants that found no room are one, called "(others)".
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
