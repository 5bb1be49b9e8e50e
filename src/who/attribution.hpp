// SPDX-License-Identifier: Apache-2.0
// Lookup of the container, pod, unit or job that a cgroup belongs to. The kernel side sends cgroup ids and paths at a
// process's first call. Names are read from the host's disk, without asking a daemon.
#pragma once

#include "bpf/shared/process.h"
#include "who/cgroup_mounts.hpp"
#include "who/cgroup_path.hpp"
#include "who/containers.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

// The owner of a cgroup. Empty fields are unknown.
struct Owner {
    std::string cgroup; // path from the root of its hierarchy; "..." replaces names that did not fit into struct
                        // cgroup_path
    CgroupOwner where;  // parsed from the path
    ContainerNames names;

    bool container() const { return !where.container_id.empty(); }
    const std::string& pod_uid() const { return where.pod_uid.empty() ? names.pod_uid : where.pod_uid; }
    const std::string& runtime() const { return where.runtime.empty() ? names.runtime : where.runtime; }
    std::string container_name() const; // the short id if the name is unknown
    std::string pod_name() const;       // NAMESPACE/NAME; the uid if the name is unknown
    std::string slurm() const;          // JOB.STEP
    std::string container_key() const;  // unique among all containers; empty if not in a container
    std::string uid_suffix() const;     // " (uid 1000)"; empty if the uid is unknown
    std::string text() const;           // names the pod or container, else the job, unit or cgroup
};

class ContainerLookup;
class WaitBudget;

class Attribution {
public:
    explicit Attribution(const std::string& host_root, WaitBudget* waits = nullptr); // waits: see Reader::Reader()
    ~Attribution();

    void learn(const process_record& record);
    // Stores the owner parsed from the most informative of `places`, or from the first of several equally informative
    // ones.
    void learn(const cgroups& ids, std::vector<CgroupPlace> places);

    // Returns an empty owner if the ids are unknown. The reference is valid until forget_unless() removes the entry.
    const Owner& owner(const cgroups& ids);

    // Removes the entries for which keep(ids) returns false.
    template<class Keep>
    void forget_unless(Keep&& keep)
    {
        std::erase_if(known_, [&](const auto& item) { return !keep({item.first.first, item.first.second}); });
    }
    size_t size() const { return known_.size(); }

private:
    struct Known {
        Owner owner;
        uint64_t next_lookup_ns = 0; // when to look up missing names again, CLOCK_MONOTONIC; 0: never
        uint64_t pause_ns = 0;
    };

    void refresh(Known& known);

    std::vector<CgroupMount> mounts_;
    std::unique_ptr<ContainerLookup> containers_;
    std::map<std::pair<uint64_t, uint64_t>, Known> known_; // the key is the cgroup's v2 and v1 id
    Owner unknown_;
};

} // namespace gpusnoop
