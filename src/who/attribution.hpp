// SPDX-License-Identifier: Apache-2.0
// Cgroup -> container, pod, unit or job. The kernel side sends ids and paths with a process's first call; the names
// that go with them are read from the host's disk, without asking any daemon.
#pragma once

#include "bpf/shared/process.h"
#include "who/cgroup_path.hpp"
#include "who/containers.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace gpusnoop {

// Who runs in a cgroup; what is not known is empty.
struct Owner {
    std::string cgroup; // path below its hierarchy's root; ".../" in front where it was too long
    CgroupOwner where;  // from the path
    ContainerNames names;

    bool container() const { return !where.container_id.empty(); }
    const std::string& pod_uid() const { return where.pod_uid.empty() ? names.pod_uid : where.pod_uid; }
    const std::string& runtime() const { return where.runtime.empty() ? names.runtime : where.runtime; }
    std::string container_name() const; // or the short id
    std::string pod_name() const;       // NAMESPACE/NAME, or the uid
    std::string slurm() const;          // JOB.STEP
    std::string text() const;           // the most telling of all of these, on one line
};

class ContainerLookup;
class WaitBudget;

class Attribution {
public:
    explicit Attribution(const std::string& host_root, WaitBudget* waits = nullptr); // see Answerer
    ~Attribution();

    void learn(const process_record& record);
    // The same by paths, of v2 and of the v1 hierarchy that tells most; empty: not mounted.
    void learn(const cgroups& ids, std::string v2, std::string v1);

    // Stays where it is until forget(). One that nothing is known of for ids that were never learned.
    const Owner& owner(const cgroups& ids);

    // Takes out those that keep(ids) is false for.
    template<class Keep>
    void forget_unless(Keep&& keep)
    {
        std::erase_if(known_, [&](const auto& item) { return !keep({item.first.first, item.first.second}); });
    }
    size_t size() const { return known_.size(); }

private:
    struct Known {
        Owner owner;
        uint64_t next_look_ns = 0; // for names that were not there, CLOCK_MONOTONIC
        uint64_t pause_ns = 0;
    };

    void refresh(Known& known);

    std::unique_ptr<ContainerLookup> containers_;
    std::map<std::pair<uint64_t, uint64_t>, Known> known_; // by v2 and v1 id
    Owner nobody_;
};

} // namespace gpusnoop
