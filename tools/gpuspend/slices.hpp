// SPDX-License-Identifier: Apache-2.0
// Makes slices of time for the ledger. For each device, a slice lists the holders, the sources that report them, and
// their activity.
#pragma once

#include "gpu/gpu_files.hpp"
#include "rows/calls.hpp"
#include "rows/holdings.hpp"
#include "rows/process_gpus.hpp"
#include "tools/gpuspend/columns.hpp"
#include "tools/gpuspend/dcgm.hpp"
#include "tools/gpuspend/grants.hpp"
#include "tools/gpuspend/ledger.hpp"
#include "tools/gpuspend/machine_gpus.hpp"
#include "tools/gpuspend/prices.hpp"
#include "tools/gpuspend/teams.hpp"
#include "who/host_files.hpp"
#include "who/processes.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop::gpuspend {

class Slices {
public:
    Slices(const Settings& settings, const std::string& host_root, Processes& processes, const Prices& prices,
           const Teams& teams);

    void add(const CallDelta& delta);
    // Returns the slice for the last `ns`. memory: traced allocations. scope: the selected processes, or null for all.
    // Processes that are not selected are merged into one tenant.
    Slice next_slice(uint64_t ns, uint64_t now_ns, const Holdings& memory, const std::set<ImageId>* scope);
    void forget(const std::set<ImageId>& images);

    // Returns the tenant with the names that are known so far.
    const Tenant& name(const Tenant& tenant) const;
    // Uids of each tenant's pods that were seen since the last drain.
    std::map<Tenant, std::set<std::string>> drain_pods() { return std::exchange(pods_, {}); }
    void forget_names() { names_.clear(); } // the next slice looks up the names of its holders again

    const MachineGpus& gpus() const { return gpus_; }
    const Grants& grants() const { return grants_; }
    const std::optional<Dcgm>& dcgm() const { return dcgm_; }

private:
    using Holders = std::map<Tenant, Holder>;
    struct Pending {
        Slice slice;
        std::map<std::string, Holders> devices;       // holders of each device, by device id
        std::map<Tenant, std::set<std::string>> held; // by tenant: ids of the held devices
        // Device id and owner key of each process that holds a device.
        std::set<std::pair<std::string, std::string>> with_process;
    };
    Tenant tenant_of(const ImageId& image);
    Tenant tenant_of(const GrantedDevice& granted);
    void remember(const Tenant& tenant, const Owner& owner, const ImageId* image, const std::string& container);
    const MachineGpu* device_of_calls(const ImageId& image, uint8_t device) const;
    void add_process(Pending& to, const ImageId& image, const Tenant& tenant, std::optional<uint64_t> memory);
    void add_grants(Pending& to, const std::set<Tenant>* scope);
    std::map<std::string, uint8_t> granted_to(const ImageId& image);
    const MachineGpu* instance_of(const ImageId& image);
    static void assign_elsewhere(Pending& to);
    Gauges gauges_of(const MachineGpu& gpu) const;
    void add_devices(Pending& to);
    std::set<ImageId> track(const std::set<ImageId>* scope);

    const Settings& settings_;
    std::string host_root_;
    Processes& processes_;
    const Prices& prices_;
    const Teams& teams_;
    NvmlFigures figures_;
    ProcessGpus process_gpus_;
    MachineGpus gpus_;
    Grants grants_;
    std::optional<Dcgm> dcgm_;
    MigFiles mig_files_;
    // For each process, the time of the last scan, and the MIG instances that it may use.
    std::map<ImageId, std::pair<uint64_t, std::set<MigAccess>>> may_use_;
    Users users_;
    std::map<std::pair<ImageId, uint8_t>, Used> used_; // use since the last slice, by process and CUDA device number
    std::map<Tenant, Tenant> names_;
    std::map<Tenant, std::set<std::string>> pods_;
};

} // namespace gpusnoop::gpuspend
