// SPDX-License-Identifier: Apache-2.0
// Circumstances that may slow a process down: its cgroup's quota and pressure, CPUs, memory and disk I/O. They are read
// from files once per interval, and counters are reported as differences from the previous reading.
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

// The kernel's counters for a process, summed over its threads and its lifetime. A value is nullopt if the process has
// exited, or if the kernel does not report the value.
struct ProcessFacts {
    std::optional<uint64_t> major_faults;
    std::optional<uint64_t> read_bytes; // bytes read from disks
    std::optional<uint64_t> written_bytes;
    std::optional<uint64_t> swapped_bytes; // memory that is swapped out now
    std::optional<uint64_t> threads;
    unsigned allowed_cpus = 0; // number of CPUs that the process may use; 0: not known
};

// Parses /proc/PID/stat, status and io.
ProcessFacts parse_process_facts(std::string_view stat, std::string_view status, std::string_view io);

ProcessFacts process_facts(pid_t pid);

// The NUMA node of the CPU that the thread runs on, or last ran on.
std::optional<unsigned> numa_node(pid_t pid, pid_t tid);

// NUMA nodes of all NVIDIA GPUs, according to `sysfs` ("/sys"); empty if there is no GPU, or no GPU's node is known.
std::set<unsigned> gpu_nodes(const std::string& sysfs);

// Circumstances of one process during an interval. A value is nullopt if it is not known.
struct Circumstances {
    // Length of the interval, which begins at the last report, or at the first reading if that is later.
    std::optional<uint64_t> covered_ns;
    std::optional<double> quota_cpus; // quota of the cgroup, in CPUs; nullopt also if there is no quota
    std::optional<uint64_t> throttles, throttled_ns;
    std::array<std::optional<double>, PRESSURES> stalled_percent{}; // share of the time in which tasks stalled (PSI
                                                                    // some)
    std::optional<uint64_t> machine_wide{};                         // 1 if stalled_percent applies to the whole machine
    std::optional<uint64_t> major_faults, read_bytes, written_bytes;
    std::optional<uint64_t> swapped_bytes, threads; // values at the end of the interval
    unsigned allowed_cpus = 0;                      // number of CPUs that the process may use; 0: not known
    unsigned cpus = 0;                              // number of CPUs of the machine
    std::set<unsigned> nodes, gpu_nodes;            // NUMA nodes of the CUDA threads, and of all GPUs
};

class CircumstancesOf {
public:
    explicit CircumstancesOf(const std::string& host_root);

    // Starts tracking the processes that are not tracked yet.
    void track(const std::vector<ImageId>& images, uint64_t now_ns);
    // Ends an interval for all tracked processes. threads: pid and tid of their CUDA threads.
    void refresh(const std::set<std::pair<uint32_t, uint32_t>>& threads, uint64_t now_ns);
    // Result of the last refresh(); null if it has no result for this process.
    const Circumstances* of(const ImageId& image) const;
    void forget(const std::vector<ImageId>& images);

private:
    struct Known {
        uint64_t read_ns = 0; // time of the reading, CLOCK_MONOTONIC
        ProcessFacts process;
        CgroupFacts cgroup;
        std::optional<Circumstances> latest;
    };
    Known read(const ImageId& image, uint64_t now_ns) const;

    CgroupFiles cgroups_;
    std::set<unsigned> gpu_nodes_;
    std::map<ImageId, Known> known_;
};

} // namespace gpusnoop
