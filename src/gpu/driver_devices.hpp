// SPDX-License-Identifier: Apache-2.0
// Device nodes of GPU drivers, by number: which there are on this machine now.
#pragma once

#include "bpf/shared/ioctl.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

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

} // namespace gpusnoop
