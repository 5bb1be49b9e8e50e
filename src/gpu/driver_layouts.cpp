// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_layouts.hpp"

#include "base/error.hpp"

#include <bpf/bpf.h>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {
namespace {

// Of the module that is loaded; none where there is none.
std::optional<DriverVersion> loaded_driver()
{
    std::ifstream file("/sys/module/nvidia/version");
    std::string line;
    std::getline(file, line);
    return parse_driver_version(line);
}

template<class Key, class Layout>
void fill_map(int map_fd, const std::vector<std::pair<Key, Layout>>& layouts)
{
    for (const auto& [key, layout] : layouts)
        if (bpf_map_update_elem(map_fd, &key, &layout, BPF_ANY))
            throw Error("the tables of the driver's commands are too small for all rows");
}

} // namespace

DriverLayouts::DriverLayouts(int commands_fd, int sizes_fd)
    : commands_fd_(commands_fd), sizes_fd_(sizes_fd), version_(loaded_driver())
{
    fill();
}

void DriverLayouts::refresh()
{
    const auto version = loaded_driver();
    if (!version || version == version_)
        return;
    version_ = version;
    fill();
}

void DriverLayouts::fill() const
{
    fill_map(commands_fd_, command_layouts(version_));
    fill_map(commands_fd_, command_heads());
    fill_map(sizes_fd_, size_layouts(version_));
    fill_map(sizes_fd_, size_heads());
}

} // namespace gpusnoop
