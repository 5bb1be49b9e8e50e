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

// Limits of a cgroup, and totals since it was created. nullopt: unknown.
struct CgroupFacts {
    std::optional<double> quota_cpus;     // lowest quota of the cgroup and the cgroups above it; nullopt: no limit
    std::optional<uint64_t> throttles;    // throttled periods, summed over the cgroups that have a quota
    std::optional<uint64_t> throttled_ns; // throttled time, summed over these cgroups and over all CPUs
    std::array<std::optional<uint64_t>, PRESSURES> stalled_us{}; // time during which at least one task was stalled
    // True if stalled_us is for the whole machine, because the cgroup has no pressure files (cgroup v1, the root
    // cgroup, or pressure accounting by cgroup is off).
    bool machine_wide = false;
};

// Returns the quota in CPUs; nullopt if there is no limit. text: the contents of cpu.max ("20000 100000"), or of
// cpu.cfs_quota_us followed by cpu.cfs_period_us.
std::optional<double> parse_quota(std::string_view text);
// Returns the value of a key in the text of cpu.stat or a similar file, with lines "key number".
std::optional<uint64_t> parse_flat(std::string_view text, std::string_view key);
// Returns the total on the line "some" of a pressure file, in microseconds.
std::optional<uint64_t> parse_pressure(std::string_view text);

class CgroupFiles {
public:
    explicit CgroupFiles(std::vector<CgroupMount> mounts) : mounts_(std::move(mounts)) {}

    // lines: text of /proc/PID/cgroup.
    CgroupFacts of(std::string_view lines) const;
    // Returns the path of the cgroup that was frozen: the process's own, or one above it. Empty if the process is not
    // frozen.
    std::string frozen_by(std::string_view lines) const;

private:
    std::string path(std::string_view lines, cgroup_controller controller, const CgroupMount*& mount) const;
    void add_quotas(std::string folder, const CgroupMount& mount, CgroupFacts& facts) const;

    std::vector<CgroupMount> mounts_;
};

// Detects threads that cannot run at all, because a signal or debugger has stopped them or their cgroup is frozen.
class Suspensions {
public:
    explicit Suspensions(const std::string& host_root) : cgroups_(cgroup_mounts(host_root)) {}

    // Returns the reason: "stopped by a signal", "stopped by its debugger or tracer, gdb 4711" or "frozen by cgroup
    // /batch/17". Empty if the thread is not suspended or has exited.
    std::string of(pid_t pid, pid_t tid) const;

private:
    CgroupFiles cgroups_;
};

} // namespace gpusnoop
