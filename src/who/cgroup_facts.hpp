// SPDX-License-Identifier: Apache-2.0
// What a cgroup may have of the machine, and what its tasks lacked: the kernel's own figures, in files.
#pragma once

#include "who/cgroup.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

enum Pressure : uint8_t { PRESSURE_CPU, PRESSURE_IO, PRESSURE_MEMORY, PRESSURES };

// nullopt where it is not known; sums are since the cgroup is there.
struct CgroupFacts {
    std::optional<double> quota_cpus;     // the least of its own and of those above it; none where there is none
    std::optional<uint64_t> throttles;    // periods in which a quota was used up, of those that have one
    std::optional<uint64_t> throttled_ns; // of all CPUs together
    std::array<std::optional<uint64_t>, PRESSURES> stalled_us{}; // some task waited for it
    bool machine_wide = false; // the pressure is: there is none of the cgroup (v1, psi=0, the root)
};

// Of cpu.max: "20000 100000"; of cpu.cfs_quota_us and cpu.cfs_period_us, with a blank between them. nullopt: no limit.
std::optional<double> parse_quota(std::string_view text);
// Of cpu.stat and its like, "key number" in each line.
std::optional<uint64_t> parse_flat(std::string_view text, std::string_view key);
// The sum of the line of which it is said that some tasks wait, in us.
std::optional<uint64_t> parse_pressure(std::string_view text);

class CgroupFiles {
public:
    explicit CgroupFiles(std::vector<CgroupMount> mounts) : mounts_(std::move(mounts)) {}

    // lines: /proc/PID/cgroup.
    CgroupFacts of(std::string_view lines) const;
    // The cgroup that keeps it frozen, its own or one above that; empty: it is not frozen.
    std::string frozen_by(std::string_view lines) const;

private:
    std::string path(std::string_view lines, cgroup_controller controller, const CgroupMount*& mount) const;
    void add_quotas(std::string folder, const CgroupMount& mount, CgroupFacts& facts) const;

    std::vector<CgroupMount> mounts_;
};

// What keeps a thread from running, whatever it waits for: a stop by a signal or debugger, or the freezer of its
// cgroup.
class Suspensions {
public:
    explicit Suspensions(const std::string& host_root) : cgroups_(cgroup_mounts(host_root)) {}

    // "stopped by a signal", "stopped by its debugger or tracer, gdb 4711", "frozen by cgroup /batch/17"; empty: it is
    // not suspended, or has ended.
    std::string of(pid_t pid, pid_t tid) const;

private:
    CgroupFiles cgroups_;
};

} // namespace gpusnoop
