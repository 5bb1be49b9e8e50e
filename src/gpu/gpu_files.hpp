// SPDX-License-Identifier: Apache-2.0
// Device files of GPU drivers (/dev/nvidiaN): those that a process has open, and those that exist.
#pragma once

#include "bpf/shared/ioctl.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

constexpr uint32_t max_gpu_minor = 247; // larger minor numbers belong to nvidiactl and similar files

// The minor numbers of the /dev/nvidiaN files that a process has open. They are read from the files themselves, because
// the files may have other names in a container. nullopt if the process has exited or has too many open files. Never
// waits for a file system that the process controls. proc: a folder like /proc.
std::optional<std::set<unsigned>> open_gpu_files(pid_t pid, const std::string& proc = "/proc");
// The minor numbers of all files with a given major number and a name that begins with "nvidia".
std::optional<std::set<unsigned>> open_nvidia_files(pid_t pid, unsigned major, const std::string& proc = "/proc");

// The kernel's encoding of device numbers (i_rdev).
constexpr uint32_t device_number(uint32_t major, uint32_t minor)
{
    return major << 20 | minor;
}

constexpr uint32_t major_of(uint32_t number)
{
    return number >> 20;
}

using DriverNodes = std::map<uint32_t, driver_node>; // by device number; MINOR_ANY stands for all other minor numbers

// The device nodes of GPU drivers on this machine, from /proc/devices and, for AMD, also from sysfs. root: prefix of
// /proc and /sys.
DriverNodes driver_nodes(const std::string& root = "");

// Adds nvidiactl, nvidia-modeset and nvidiaN, whose major number is fixed: 195 (Documentation/admin-guide/devices.txt).
void add_nvidia_nodes(DriverNodes& nodes);

// The major number of a driver, by its name in /proc/devices; nullopt if it is not loaded.
std::optional<uint32_t> character_major(const std::string& name, const std::string& root = "");

// The name below /dev: "nvidiactl", "nvidia0", "renderD128".
std::string node_name(uint8_t node, uint16_t minor);

// A MIG instance that a process or container may use. A process that uses an instance keeps the instance's capability
// file open. A container has the capability files of its instances.
struct MigAccess {
    unsigned gpu_minor = 0; // N of /dev/nvidiaN
    uint16_t gpu_instance = 0;
    std::optional<uint16_t> compute_instance{}; // nullopt: access to the GPU instance itself
    auto operator<=>(const MigAccess&) const = default;
};

// The capability files of MIG instances, /dev/nvidia-caps/nvidia-capN.
class MigFiles {
public:
    explicit MigFiles(const std::string& root = ""); // prefix of /proc

    // The instances that a process may use, reduced by most_specific(). Empty if the process has exited.
    std::set<MigAccess> access_of(pid_t pid, const std::string& proc = "/proc") const;
    std::optional<MigAccess> at(unsigned minor) const; // the instance of nvidia-capN, by N

private:
    std::optional<unsigned> major_;
    std::map<unsigned, MigAccess> by_minor_;
};

// Removes the access to a GPU instance if the set has access to one of its compute instances, because a process that
// uses a compute instance opens the files of both.
std::set<MigAccess> most_specific(std::set<MigAccess> all);

// Parses /proc/driver/nvidia-caps/mig-minors, which has lines such as "gpu0/gi1/access 12" and "gpu0/gi1/ci0/access
// 13". Returns the instances by minor number.
std::map<unsigned, MigAccess> parse_mig_minors(std::string_view text);

} // namespace gpusnoop
