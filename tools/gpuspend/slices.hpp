// SPDX-License-Identifier: Apache-2.0
// What happened since the last look, as a slice of time for the ledger: who held which device by whose word, and what
// each did there.
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
    // only: processes that were asked for; all others are one tenant. null: all are.
    Slices(const Settings& settings, const std::string& host_root, Processes& processes, const Prices& prices,
           const Teams& teams);

    void add(const CallDelta& delta);
    // Of the time until now. memory: what processes hold as far as they were seen to allocate it.
    Slice take(uint64_t ns, uint64_t now_ns, const Holdings& memory, const std::set<ImageId>* only);
    void forget(const std::set<ImageId>& images);

    // What a tenant of the ledger is called, as far as is known by now.
    const Tenant& name(const Tenant& tenant) const;
    // uids of the pods that were seen with a tenant's name, since the last time.
    std::map<Tenant, std::set<std::string>> take_pods() { return std::exchange(pods_, {}); }
    void forget_names() { names_.clear(); } // those that hold are named anew in the next slice

    const MachineGpus& gpus() const { return gpus_; }
    const Grants& grants() const { return grants_; }
    const std::optional<Dcgm>& dcgm() const { return dcgm_; }

private:
    using Holders = std::map<Tenant, Holder>;
    struct Pending {
        Slice slice;
        std::map<std::string, Holders> devices;                     // by id
        std::map<Tenant, std::set<std::string>> held;               // devices
        std::set<std::pair<std::string, std::string>> with_process; // devices, and whose they are
    };
    Tenant tenant_of(const ImageId& image);
    Tenant tenant_of(const Given& given);
    void remember(const Tenant& tenant, const Owner& owner, const ImageId* image, const std::string& container);
    const MachineGpu* device_of_calls(const ImageId& image, uint8_t device) const;
    void add_process(Pending& to, const ImageId& image, const Tenant& tenant, std::optional<uint64_t> memory);
    void add_grants(Pending& to, const std::set<Tenant>* only);
    std::map<std::string, uint8_t> granted_to(const ImageId& image);
    const MachineGpu* instance_of(const ImageId& image);
    static void settle(Pending& to);
    Gauges gauges_of(const MachineGpu& gpu) const;
    void add_devices(Pending& to);
    std::set<ImageId> meet(const std::set<ImageId>* only);

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
    std::map<ImageId, std::pair<uint64_t, std::set<MigAccess>>> may_use_; // and when it was looked at
    Users users_;
    std::map<std::pair<ImageId, uint8_t>, Used> used_; // since the last slice, by CUDA's number of the device
    std::map<Tenant, Tenant> names_;
    std::map<Tenant, std::set<std::string>> pods_;
};

} // namespace gpusnoop::gpuspend
