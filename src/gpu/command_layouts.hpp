// SPDX-License-Identifier: Apache-2.0
// Layouts of the structs that programs pass to GPU drivers by ioctl: offsets of the fields that the tools show. The
// layouts are generated from the tables in data/. Their sources are listed in data/README.md.
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

// Returns one layout per request. Covers NVIDIA's driver in this version, and AMD's driver, whose layouts do not depend
// on the version. If the version is unknown, covers the requests of all versions. An offset that differs between
// versions is then OFFSET_NONE, and the size is the smallest of all versions.
std::vector<std::pair<command_key, command_layout>> command_layouts(std::optional<DriverVersion> version);

// Returns the layouts of fields that contain sizes, for a driver version. If the version is unknown, returns only
// layouts that are the same in all versions that have the command.
std::vector<std::pair<size_key, size_layout>> size_layouts(std::optional<DriverVersion> version);

// Fallback layouts for requests to NVIDIA's driver that are not in the tables, such as those of future versions. They
// work for any struct size, because their keys contain the command number instead of the whole request. The layouts of
// command_heads() contain the offsets of the subject (such as the control command or the class) and of the pointer to
// the parameters, but not of the status. size_heads() returns the layouts of sizes in these parameters.
std::vector<std::pair<command_key, command_layout>> command_heads();
std::vector<std::pair<size_key, size_layout>> size_heads();

// Fills the BPF maps with the layouts for the loaded driver.
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
