// SPDX-License-Identifier: Apache-2.0
#include "proc/cuda_libraries.hpp"

#include "base/machine.hpp"
#include "base/text.hpp"
#include "proc/process.hpp"

#include <iterator>
#include <utility>

namespace gpusnoop {
namespace {

// Folders used by distributions, by the container toolkits of GKE and the GPU operator, and by WSL and NixOS.
constexpr std::string_view usual_folders[] = {
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/run/nvidia/driver/usr/lib/" GPUSNOOP_LIBRARIES,
    "/run/nvidia/driver/usr/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
    "/opt/rocm/lib",
};

} // namespace

bool is_driver(std::string_view path)
{
    const std::string_view name = base_name(path);
    return name.starts_with("libcuda.so") ||
           (name.starts_with("libcuda-") && name.find(".so") != std::string_view::npos);
}

bool is_runtime(std::string_view path)
{
    const std::string_view name = base_name(path);
    return name.starts_with("libcudart") && name.find(".so") != std::string_view::npos;
}

bool is_hip(std::string_view path)
{
    const std::string_view name = base_name(path);
    return name.starts_with("libamdhip64") && name.find(".so") != std::string_view::npos;
}

bool is_cuda(std::string_view path)
{
    return is_driver(path) || is_runtime(path) || is_hip(path);
}

bool is_nccl(std::string_view path)
{
    const std::string_view name = base_name(path);
    return (name.starts_with("libnccl") || name.starts_with("librccl")) && name.find(".so") != std::string_view::npos &&
           !name.starts_with("libnccl-net") && !name.starts_with("libnccl-profiler") &&
           !name.starts_with("libnccl-tuner") && !name.starts_with("librccl-net");
}

bool is_memfd(std::string_view path)
{
    return path.starts_with("/memfd:");
}

std::vector<std::string> driver_folders(std::string_view environment)
{
    std::vector<std::string> folders(std::begin(machine::driver_folders), std::end(machine::driver_folders));
    folders.insert(folders.end(), std::begin(usual_folders), std::end(usual_folders));
    for (std::string& folder : library_path(environment))
        folders.push_back(std::move(folder));
    return folders;
}

} // namespace gpusnoop
