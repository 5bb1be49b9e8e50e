// SPDX-License-Identifier: Apache-2.0
#include "driver/monitors.hpp"

#include "driver/driver_devices.hpp"
#include "driver/driver_names.hpp"
#include "driver/driver_text.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace gpusnoop {
namespace {

// Every CUDA process opens nvidia-uvm, and NVML never does.
bool is_work(const call_key& key)
{
    if (key.driver.node == NODE_NVIDIA_UVM || key.driver.node == NODE_KFD || key.driver.node == NODE_AMDGPU)
        return true;
    const auto number = object_class(key);
    return number && (submits_work(class_kind(*number)) || class_kind(*number) == ClassKind::memory);
}

// What was done before tracing began is seen by what is still there.
bool looks_like_work(pid_t pid)
{
    constexpr std::array<std::string_view, 4> libraries{"/libcuda.so", "/libnvidia-glcore.so", "/libnvidia-eglcore.so",
                                                        "/libnvidia-glvkspirv.so"};
    for (const Mapping& mapping : mappings(pid))
        if (std::ranges::any_of(libraries, [&](auto name) { return mapping.path.find(name) != std::string::npos; }))
            return true;
    const DriverNodes nodes = driver_nodes();
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
        struct stat status {};
        if (stat(entry.path().c_str(), &status) || !S_ISCHR(status.st_mode))
            continue;
        const auto node = nodes.find(device_number(major(status.st_rdev), minor(status.st_rdev)));
        if (node != nodes.end() && (node->second == NODE_NVIDIA_UVM || node->second == NODE_NVIDIA_MODESET))
            return true;
    }
    return false;
}

} // namespace

void Monitors::see(const call_key& key)
{
    if (is_work(key))
        workers_.insert(ImageId(key.image));
}

bool Monitors::only_polls(const ImageId& image)
{
    if (workers_.contains(image))
        return false;
    const auto [found, first] = looked_at_.try_emplace(image, false);
    if (first)
        found->second = !looks_like_work(static_cast<pid_t>(image.pid));
    return found->second;
}

void Monitors::forget(const std::set<ImageId>& images)
{
    for (const ImageId& image : images) {
        workers_.erase(image);
        looked_at_.erase(image);
    }
}

} // namespace gpusnoop
