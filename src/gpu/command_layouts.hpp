// SPDX-License-Identifier: Apache-2.0
// Layouts of the structs in calls to GPU drivers: offsets of the fields that the tools show. The layouts are generated
// from the tables in data/, whose sources data/README.md lists.
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

// text: the contents of /sys/module/nvidia/version, such as "575.51.02" or "515.57". Surrounding white space is
// ignored.
std::optional<DriverVersion> parse_driver_version(std::string_view text);

// Returns the layouts for a version of NVIDIA's driver, one per request, and the layouts for AMD, which are the same
// for all versions. If the version is unknown, returns the requests of all versions. In their layouts, an offset that
// differs between versions is OFFSET_NONE, and the size is the smallest of all versions.
std::vector<std::pair<command_key, command_layout>> command_layouts(std::optional<DriverVersion> version);

// Returns the layouts of fields that contain sizes, for a driver version. If the version is unknown, returns only
// layouts that are the same in all versions that accept their command.
std::vector<std::pair<size_key, size_layout>> size_layouts(std::optional<DriverVersion> version);

// Layouts for NVIDIA's structs of any size, even in future drivers. command_heads() describes the beginning of each
// struct, up to the subject and the pointer to the parameters, without the status. size_heads() describes the sizes in
// these parameters. The keys contain the command's number instead of its request.
std::vector<std::pair<command_key, command_layout>> command_heads();
std::vector<std::pair<size_key, size_layout>> size_heads();

// Fills the kernel side's tables of layouts for the loaded driver.
class DriverLayouts {
public:
    // Fills the maps command_layouts and size_layouts. Throws Error if they are too small.
    DriverLayouts(int commands_fd, int sizes_fd);

    void refresh(); // fills the maps again if another driver version has been loaded

private:
    void fill() const;

    int commands_fd_;
    int sizes_fd_;
    std::optional<DriverVersion> version_; // driver version of the layouts in the maps
};

} // namespace gpusnoop
