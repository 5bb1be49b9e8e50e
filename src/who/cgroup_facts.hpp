// SPDX-License-Identifier: Apache-2.0
// CPU quota, throttling and pressure (PSI) of a cgroup, from the kernel's files.
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

// nullopt: unknown. Totals since the cgroup was created.
struct CgroupFacts {
    std::optional<double> quota_cpus;     // the lowest of its own quota and those above it; nullopt: no limit
    std::optional<uint64_t> throttles;    // throttled periods, added up over these quotas
    std::optional<uint64_t> throttled_ns; // of all CPUs together
    std::array<std::optional<uint64_t>, PRESSURES> stalled_us{}; // time in which some task was stalled
    bool machine_wide = false; // the pressure is the machine's: the cgroup has no figure (v1, psi=0, the root)
};

// text: cpu.max ("20000 100000"), or cpu.cfs_quota_us followed by cpu.cfs_period_us. nullopt: no limit.
std::optional<double> parse_quota(std::string_view text);
// The number of a key in cpu.stat and similar files with lines of "key number".
std::optional<uint64_t> parse_flat(std::string_view text, std::string_view key);
// The total of the line "some" of a pressure file, in us.
std::optional<uint64_t> parse_pressure(std::string_view text);

class CgroupFiles {
public:
    explicit CgroupFiles(std::vector<CgroupMount> mounts) : mounts_(std::move(mounts)) {}

    // lines: text of /proc/PID/cgroup.
    CgroupFacts of(std::string_view lines) const;
    // The frozen cgroup, the process's own or one above it; empty: not frozen.
    std::string frozen_by(std::string_view lines) const;

private:
    std::string path(std::string_view lines, cgroup_controller controller, const CgroupMount*& mount) const;
    void add_quotas(std::string folder, const CgroupMount& mount, CgroupFacts& facts) const;

    std::vector<CgroupMount> mounts_;
};

// Reasons why a thread cannot run at all: a signal or debugger has stopped it, or its cgroup is frozen.
class Suspensions {
public:
    explicit Suspensions(const std::string& host_root) : cgroups_(cgroup_mounts(host_root)) {}

    // "stopped by a signal", "stopped by its debugger or tracer, gdb 4711", "frozen by cgroup /batch/17"; empty: not
    // suspended, or exited.
    std::string of(pid_t pid, pid_t tid) const;

private:
    CgroupFiles cgroups_;
};

} // namespace gpusnoop
