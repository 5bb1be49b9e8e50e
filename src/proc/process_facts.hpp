// SPDX-License-Identifier: Apache-2.0
// What the kernel has counted of a process: page faults, swap, files, CPUs that it may use, NUMA nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

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

} // namespace gpusnoop
