// SPDX-License-Identifier: Apache-2.0
// Device files of GPU drivers (/dev/nvidiaN): which of them a process has open, and which exist.
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

constexpr uint32_t max_gpu_minor = 247; // minor numbers above are nvidiactl and the like

// The minor numbers of the /dev/nvidiaN files that a process has open. They are read from the files themselves, because
// a container may have other names for them. nullopt: the process has exited, or has too many open files. Never waits
// for a file system that the process controls. proc: a folder like /proc.
std::optional<std::set<unsigned>> open_gpu_files(pid_t pid, const std::string& proc = "/proc");
// The same for other files of the driver, by their major number. Their names also begin with "nvidia".
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

using DriverNodes = std::map<uint32_t, driver_node>; // by device number; MINOR_ANY: all other minors

// The device nodes of GPU drivers on this machine: NVIDIA's from /proc/devices, AMD's from there and from sysfs. root:
// prefix of /proc and /sys.
DriverNodes driver_nodes(const std::string& root = "");

// Adds nvidiactl, nvidia-modeset and nvidiaN, whose major number is fixed: 195 (Documentation/admin-guide/devices.txt).
void add_nvidia_nodes(DriverNodes& nodes);

// The major number of a driver, by its name in /proc/devices; nullopt if it is not loaded.
std::optional<uint32_t> character_major(const std::string& name, const std::string& root = "");

// The name below /dev: "nvidiactl", "nvidia0", "renderD128".
std::string node_name(uint8_t node, uint16_t minor);

// A MIG instance that a process or container may use. A process opens the driver's capability file of its instance when
// it starts, and keeps it open; a container has the files of its instances.
struct MigAccess {
    unsigned gpu_minor = 0; // N of /dev/nvidiaN
    uint16_t gpu_instance = 0;
    std::optional<uint16_t> compute_instance{}; // nullopt: the file is that of the GPU instance itself
    auto operator<=>(const MigAccess&) const = default;
};

class MigFiles {
public:
    explicit MigFiles(const std::string& root = ""); // prefix of /proc

    // The instances of a process, reduced by most_specific(). Empty if it has exited or may use none.
    std::set<MigAccess> access_of(pid_t pid, const std::string& proc = "/proc") const;
    std::optional<MigAccess> at(unsigned minor) const; // by N of /dev/nvidia-caps/nvidia-capN

private:
    std::optional<unsigned> major_;
    std::map<unsigned, MigAccess> by_minor_;
};

// Removes GPU instances that have a compute instance in the set: the user of a compute instance has the files of both.
std::set<MigAccess> most_specific(std::set<MigAccess> all);

// /proc/driver/nvidia-caps/mig-minors: "gpu0/gi1/access 12", "gpu0/gi1/ci0/access 13" and others.
std::map<unsigned, MigAccess> parse_mig_minors(std::string_view text);

} // namespace gpusnoop
