// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_devices.hpp"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sstream>

namespace gpusnoop {
namespace {

constexpr uint32_t nvidia_major = 195;
constexpr uint32_t nvidia_ctl_minor = 255;
constexpr uint32_t nvidia_modeset_minor = 254;
constexpr uint32_t drm_major = 226;
constexpr uint32_t first_render_minor = 128;

// Character devices of /proc/devices: name -> major.
std::multimap<std::string, uint32_t> character_devices(const std::string& root)
{
    std::ifstream file(root + "/proc/devices");
    std::multimap<std::string, uint32_t> devices;
    std::string line;
    while (std::getline(file, line) && line != "Block devices:") {
        std::istringstream fields(line);
        uint32_t major = 0;
        std::string name;
        if (fields >> major >> name)
            devices.emplace(name, major);
    }
    return devices;
}

// "226:128"
std::optional<uint32_t> number_in(const std::filesystem::path& path)
{
    std::ifstream file(path);
    uint32_t major = 0, minor = 0;
    char colon = 0;
    if (file >> major >> colon >> minor && colon == ':' && minor < MINOR_ANY)
        return device_number(major, minor);
    return std::nullopt;
}

void add_amdgpu_nodes(DriverNodes& nodes, const std::string& root)
{
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/class/drm", none)) {
        const auto driver = std::filesystem::read_symlink(entry.path() / "device/driver", none);
        if (none || driver.filename() != "amdgpu")
            continue;
        if (const auto number = number_in(entry.path() / "dev"))
            nodes[*number] = NODE_AMDGPU;
    }
}

} // namespace

std::optional<uint32_t> character_major(const std::string& name, const std::string& root)
{
    const auto devices = character_devices(root);
    const auto found = devices.find(name);
    return found == devices.end() ? std::nullopt : std::optional(found->second);
}

void add_nvidia_nodes(DriverNodes& nodes)
{
    nodes[device_number(nvidia_major, nvidia_ctl_minor)] = NODE_NVIDIA_CTL;
    nodes[device_number(nvidia_major, nvidia_modeset_minor)] = NODE_NVIDIA_MODESET;
    nodes[device_number(nvidia_major, MINOR_ANY)] = NODE_NVIDIA_GPU;
}

DriverNodes driver_nodes(const std::string& root)
{
    DriverNodes nodes;
    for (const auto& [name, major] : character_devices(root)) {
        if (major == nvidia_major) {
            add_nvidia_nodes(nodes);
        } else if (name == "nvidia-uvm") {
            nodes[device_number(major, 0)] = NODE_NVIDIA_UVM;
            nodes[device_number(major, 1)] = NODE_NVIDIA_UVM_TOOLS;
        } else if (name == "nvidia-caps") {
            nodes[device_number(major, MINOR_ANY)] = NODE_NVIDIA_CAPS;
        } else if (name == "kfd") {
            nodes[device_number(major, 0)] = NODE_KFD;
        } else if (major == drm_major) {
            add_amdgpu_nodes(nodes, root);
        }
    }
    return nodes;
}

std::string node_name(uint8_t node, uint16_t minor)
{
    switch (node) {
    case NODE_NVIDIA_CTL:
        return "nvidiactl";
    case NODE_NVIDIA_GPU:
        return fmt::format("nvidia{}", minor);
    case NODE_NVIDIA_MODESET:
        return "nvidia-modeset";
    case NODE_NVIDIA_UVM:
        return "nvidia-uvm";
    case NODE_NVIDIA_UVM_TOOLS:
        return "nvidia-uvm-tools";
    case NODE_NVIDIA_CAPS:
        return fmt::format("nvidia-cap{}", minor);
    case NODE_KFD:
        return "kfd";
    case NODE_AMDGPU:
        return fmt::format("{}{}", minor < first_render_minor ? "card" : "renderD", minor);
    default:
        return "?";
    }
}

} // namespace gpusnoop
