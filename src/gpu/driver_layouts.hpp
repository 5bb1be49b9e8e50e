// SPDX-License-Identifier: Apache-2.0
// The kernel side's tables of how the driver's commands are laid out, for the driver that is loaded.
#pragma once

#include "gpu/command_layouts.hpp"

#include <optional>

namespace gpusnoop {

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
