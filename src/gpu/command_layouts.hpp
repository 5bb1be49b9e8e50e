// SPDX-License-Identifier: Apache-2.0
// Layouts of the structs in calls to GPU drivers: the offsets of the fields that are shown. They come from the tables
// in data/, whose sources are listed in data/README.md.
#pragma once

#include "bpf/shared/ioctl.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

// Version of NVIDIA's kernel modules.
struct DriverVersion {
    uint32_t major = 0;
    uint32_t minor = 0;
    uint32_t patch = 0;

    auto operator<=>(const DriverVersion&) const = default;
};

// text: as in /sys/module/nvidia/version, "575.51.02" or "515.57". Surrounding white space is ignored.
std::optional<DriverVersion> parse_driver_version(std::string_view text);

// The layouts for a driver version, one per request, and all layouts for AMD, which do not depend on a version. If the
// version is unknown, returns every request that any version accepts. Offsets that differ between versions are then
// OFFSET_NONE, and the size is the smallest.
std::vector<std::pair<command_key, command_layout>> command_layouts(std::optional<DriverVersion> version);

// The layouts of sizes for a driver version. If the version is unknown, only sizes that are valid in all versions of
// their command.
std::vector<std::pair<size_key, size_layout>> size_layouts(std::optional<DriverVersion> version);

// Layouts that are valid for structs of any size, even in future drivers. They cover the beginnings of NVIDIA's structs
// that contain a subject, and sizes in the parameters that the structs point to. The key is the command's number
// instead of its request. The status is not included.
std::vector<std::pair<command_key, command_layout>> command_heads();
std::vector<std::pair<size_key, size_layout>> size_heads();

// The kernel side's tables of command layouts, for the loaded driver.
class DriverLayouts {
public:
    // Fills the maps command_layouts and size_layouts. Throws Error if they are too small.
    DriverLayouts(int commands_fd, int sizes_fd);

    void refresh(); // fills the maps again if another driver version has been loaded

private:
    void fill() const;

    int commands_fd_;
    int sizes_fd_;
    std::optional<DriverVersion> version_; // of the layouts in the maps
};

} // namespace gpusnoop
