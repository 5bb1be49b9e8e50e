// SPDX-License-Identifier: Apache-2.0
// Device files of GPU drivers (/dev/nvidiaN): which ones a process has open, and which ones exist.
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

// Returns the minor numbers of the /dev/nvidiaN files that a process has open. The numbers come from stat(), because a
// container may use other file names. nullopt if the process has exited or has too many open files. Never waits for a
// file system that the process controls. proc: path of a procfs.
std::optional<std::set<unsigned>> open_gpu_files(pid_t pid, const std::string& proc = "/proc");
// Returns the minor numbers of the open files that have this major number and a name that begins with "nvidia".
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

using DriverNodes = std::map<uint32_t, driver_node>; // by device number; an entry with MINOR_ANY applies to all minors
                                                     // without an entry of their own

// Returns the device nodes of GPU drivers on this machine, from /proc/devices and, for AMD, also from sysfs. root:
// prefix of /proc and /sys.
DriverNodes driver_nodes(const std::string& root = "");

// Adds nvidiactl, nvidia-modeset and nvidiaN, which have the fixed major number 195
// (Documentation/admin-guide/devices.txt).
void add_nvidia_nodes(DriverNodes& nodes);

// Returns the major number of a driver, given its name in /proc/devices; nullopt if the driver is not loaded.
std::optional<uint32_t> character_major(const std::string& name, const std::string& root = "");

// Returns the name of a device file in /dev or /dev/dri: "nvidiactl", "nvidia0", "renderD128".
std::string node_name(uint8_t node, uint16_t minor);

// A MIG instance that a process or container may use. A process keeps the capability files of its instances open; a
// container's /dev has the capability files of its instances.
struct MigAccess {
    unsigned gpu_minor = 0; // N of /dev/nvidiaN
    uint16_t gpu_instance = 0;
    std::optional<uint16_t> compute_instance{}; // nullopt: the whole GPU instance
    auto operator<=>(const MigAccess&) const = default;
};

// Capability files of MIG instances, /dev/nvidia-caps/nvidia-capN.
class MigFiles {
public:
    explicit MigFiles(const std::string& root = ""); // root: prefix of /proc

    // Returns the instances that a process may use, reduced by most_specific(). Empty if the process has exited.
    std::set<MigAccess> access_of(pid_t pid, const std::string& proc = "/proc") const;
    std::optional<MigAccess> at(unsigned minor) const; // the instance whose file is nvidia-capMINOR

private:
    std::optional<unsigned> major_;
    std::map<unsigned, MigAccess> by_minor_;
};

// Removes each GPU instance that has a compute instance in the set. A process that uses a compute instance also opens
// the file of its GPU instance, which does not mean that it uses the whole GPU instance.
std::set<MigAccess> most_specific(std::set<MigAccess> all);

// Parses /proc/driver/nvidia-caps/mig-minors, which has lines such as "gpu0/gi1/access 12" and "gpu0/gi1/ci0/access
// 13". Returns the instances by minor number.
std::map<unsigned, MigAccess> parse_mig_minors(std::string_view text);

} // namespace gpusnoop
