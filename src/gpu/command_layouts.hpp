// SPDX-License-Identifier: Apache-2.0
// Where structs of calls into GPU drivers keep what is told of them. From the tables of data/, whose README.md has
// their sources.
#pragma once

#include "bpf/shared/ioctl.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

// Of NVIDIA's kernel modules.
struct DriverVersion {
    uint32_t major = 0;
    uint32_t minor = 0;
    uint32_t patch = 0;

    auto operator<=>(const DriverVersion&) const = default;
};

// As in /sys/module/nvidia/version: "575.51.02", "515.57". White space around it does not matter.
std::optional<DriverVersion> parse_driver_version(std::string_view text);

// The layouts that hold for a driver, each request once; all of AMD's, which have no such versions. Of an unknown
// driver each request that some version takes: an offset that differs between versions is then OFFSET_NONE, and the
// size is the least.
std::vector<std::pair<command_key, command_layout>> command_layouts(std::optional<DriverVersion> version);

// Likewise; of an unknown driver those only that hold for all versions of their command.
std::vector<std::pair<size_key, size_layout>> size_layouts(std::optional<DriverVersion> version);

// What holds for structs of any size, of drivers to come, too: how those of NVIDIA's commands begin that are about
// something, and sizes behind their pointers. By the command's number alone, and without a status.
std::vector<std::pair<command_key, command_layout>> command_heads();
std::vector<std::pair<size_key, size_layout>> size_heads();

// The kernel side's tables of how the driver's commands are laid out, for the driver that is loaded.
class DriverLayouts {
public:
    // The maps command_layouts and size_layouts; fills them. Throws Error where they have no room.
    DriverLayouts(int commands_fd, int sizes_fd);

    void refresh(); // for another driver, if one has been loaded since

private:
    void fill() const;

    int commands_fd_;
    int sizes_fd_;
    std::optional<DriverVersion> version_; // that the layouts are of
};

} // namespace gpusnoop
