// SPDX-License-Identifier: Apache-2.0
// Which of the driver's GPU files (/dev/nvidiaN) a process holds open.
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

// Their minor numbers, whatever the files are called where the process lives: a container may have them by other names.
// nullopt: it is gone, or has too many files open to look at all. Never waits for a file system of the process's own.
// proc: a folder like /proc.
std::optional<std::set<unsigned>> open_gpu_files(pid_t pid, const std::string& proc = "/proc");
// The same of the driver's other files, by their major number, which begin with its name, too.
std::optional<std::set<unsigned>> open_nvidia_files(pid_t pid, unsigned major, const std::string& proc = "/proc");

// Device nodes of GPU drivers, by number: which there are on this machine now.

// As the kernel keeps it in i_rdev.
constexpr uint32_t device_number(uint32_t major, uint32_t minor)
{
    return major << 20 | minor;
}

constexpr uint32_t major_of(uint32_t number)
{
    return number >> 20;
}

using DriverNodes = std::map<uint32_t, driver_node>; // by number; MINOR_ANY: all others of the major

// NVIDIA's from /proc/devices, AMD's from there and from sysfs. root: in whose proc and sys.
DriverNodes driver_nodes(const std::string& root = "");

// nvidiactl, nvidia-modeset and nvidiaN, whose major is 195 by agreement (Documentation/admin-guide/devices.txt).
void add_nvidia_nodes(DriverNodes& nodes);

// The number that a driver has for its files, by its name in /proc/devices; nullopt: it is not there.
std::optional<uint32_t> character_major(const std::string& name, const std::string& root = "");

// As below /dev: "nvidiactl", "nvidia0", "renderD128".
std::string node_name(uint8_t node, uint16_t minor);

// Which GPU instances of MIG a process may use, by the driver's capability files that it holds open: it needs the
// instance's to begin, and keeps it open; or a container, by those that it has.
struct MigAccess {
    unsigned gpu_minor = 0; // N of /dev/nvidiaN
    uint16_t gpu_instance = 0;
    std::optional<uint16_t> compute_instance{}; // in it; nullopt: the file is the GPU instance's own
    auto operator<=>(const MigAccess&) const = default;
};

class MigFiles {
public:
    explicit MigFiles(const std::string& root = ""); // in whose proc the numbers stand

    // As most_specific() has them. Empty where it is gone, or may use none.
    std::set<MigAccess> access_of(pid_t pid, const std::string& proc = "/proc") const;
    std::optional<MigAccess> at(unsigned minor) const; // of /dev/nvidia-caps/nvidia-capN

private:
    std::optional<unsigned> major_;
    std::map<unsigned, MigAccess> by_minor_;
};

// Without GPU instances of whose compute instances some are there: whoever uses one has the files of both.
std::set<MigAccess> most_specific(std::set<MigAccess> all);

// /proc/driver/nvidia-caps/mig-minors: "gpu0/gi1/access 12", "gpu0/gi1/ci0/access 13" and others.
std::map<unsigned, MigAccess> parse_mig_minors(std::string_view text);

} // namespace gpusnoop
