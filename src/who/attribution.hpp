// SPDX-License-Identifier: Apache-2.0
// Cgroup -> container, pod, unit or job. The BPF side sends cgroup ids and paths with a process's first call; the names
// are read from the host's disk, without asking any daemon.
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
    std::string cgroup; // path below its hierarchy's root; "..." replaces names that did not fit
    CgroupOwner where;  // from the path
    ContainerNames names;

    bool container() const { return !where.container_id.empty(); }
    const std::string& pod_uid() const { return where.pod_uid.empty() ? names.pod_uid : where.pod_uid; }
    const std::string& runtime() const { return where.runtime.empty() ? names.runtime : where.runtime; }
    std::string container_name() const; // or the short id
    std::string pod_name() const;       // NAMESPACE/NAME, or the uid
    std::string slurm() const;          // JOB.STEP
    std::string container_key() const;  // unique among all containers; empty: in no container
    std::string uid_suffix() const;     // " (uid 1000)", or empty
    std::string text() const;           // the most specific of these, on one line
};

class ContainerLookup;
class WaitBudget;

class Attribution {
public:
    explicit Attribution(const std::string& host_root, WaitBudget* waits = nullptr); // see Reader
    ~Attribution();

    void learn(const process_record& record);
    // The same from paths. The most informative one counts, or the first if several are equal.
    void learn(const cgroups& ids, std::vector<CgroupPlace> places);

    // The reference is valid until forget_unless() removes the entry. An empty owner for ids that were never learned.
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
        uint64_t next_lookup_ns = 0; // when to look for missing names again, CLOCK_MONOTONIC; 0: never
        uint64_t pause_ns = 0;
    };

    void refresh(Known& known);

    std::vector<CgroupMount> mounts_;
    std::unique_ptr<ContainerLookup> containers_;
    std::map<std::pair<uint64_t, uint64_t>, Known> known_; // by v2 and v1 id
    Owner unknown_;
};

} // namespace gpusnoop
