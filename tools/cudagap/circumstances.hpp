// SPDX-License-Identifier: Apache-2.0
// What surrounds a process, and may hold it up: its cgroup's quota and pressure, CPUs, memory, disks. Read from files,
// once per interval, and told as what has come since the last one.
#pragma once

#include "proc/mapped_file.hpp"
#include "proc/process_facts.hpp"
#include "who/cgroup_facts.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

// Of one process, in an interval. nullopt: not known.
struct Circumstances {
    std::optional<uint64_t> covered_ns; // from when it was first looked at, or the last report
    std::optional<double> quota_cpus;   // none also where there is none
    std::optional<uint64_t> throttles, throttled_ns;
    std::array<std::optional<double>, PRESSURES> stalled_percent{}; // of the time
    std::optional<uint64_t> of_machine{};                           // that is, 0 or 1
    std::optional<uint64_t> major_faults, read_bytes, written_bytes;
    std::optional<uint64_t> swapped_bytes, threads; // at its end
    unsigned allowed_cpus = 0;                      // 0: not known
    unsigned cpus = 0;                              // of the machine
    std::set<unsigned> nodes, gpu_nodes;            // NUMA: that its calling threads were on; those of all GPUs
};

class CircumstancesOf {
public:
    explicit CircumstancesOf(const std::string& host_root);

    // From now on. Those that are known already go on.
    void meet(const std::vector<ImageId>& images, uint64_t now_ns);
    // An interval ends: of those that have been met. threads: pid and tid of those that call.
    void refresh(const std::set<std::pair<uint32_t, uint32_t>>& threads, uint64_t now_ns);
    // As of the last refresh(); null: not known.
    const Circumstances* of(const ImageId& image) const;
    void forget(const std::vector<ImageId>& images);

private:
    struct Known {
        uint64_t read_ns = 0; // CLOCK_MONOTONIC
        ProcessFacts process;
        CgroupFacts cgroup;
        std::optional<Circumstances> told;
    };
    Known read(const ImageId& image, uint64_t now_ns) const;

    CgroupFiles cgroups_;
    std::set<unsigned> gpu_nodes_;
    std::map<ImageId, Known> known_;
};

} // namespace gpusnoop
