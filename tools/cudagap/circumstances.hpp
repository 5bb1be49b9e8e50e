// SPDX-License-Identifier: Apache-2.0
// What surrounds a process, and may hold it up: its cgroup's quota and pressure, CPUs, memory, disks. Read from files,
// once per interval, and told as what has come since the last one.
#pragma once

#include "proc/mapped_file.hpp"
#include "who/cgroup_facts.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

// What the kernel has counted of a process: page faults, swap, files, CPUs that it may use, NUMA nodes.

// nullopt where it is gone, or the kernel does not tell.
struct ProcessFacts {
    std::optional<uint64_t> major_faults; // of its life, of all threads, as the others that are counted
    std::optional<uint64_t> read_bytes;   // from disks
    std::optional<uint64_t> written_bytes;
    std::optional<uint64_t> swapped_bytes; // now
    std::optional<uint64_t> threads;
    unsigned allowed_cpus = 0; // 0: not known
};

// From the texts of its files stat, status and io.
ProcessFacts parse_process_facts(std::string_view stat, std::string_view status, std::string_view io);

ProcessFacts process_facts(pid_t pid);

// The node of the CPU that the thread runs on, or ran on last.
std::optional<unsigned> numa_node(pid_t pid, pid_t tid);

// Those that NVIDIA's devices are on, below sysfs ("/sys"); empty where it has none, or does not know.
std::set<unsigned> gpu_nodes(const std::string& sysfs);

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
