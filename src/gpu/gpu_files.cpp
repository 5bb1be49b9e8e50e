// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_files.hpp"

#include "base/fd.hpp"
#include "base/text.hpp"
#include "proc/threads.hpp"

#include <algorithm>
#include <array>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

namespace {

constexpr size_t max_files = 4096; // open files examined per process
constexpr uint32_t nvidia_major = 195;

// True if this link in /proc/PID/fd refers to a file named nvidia*. Reads only the link's text: the kernel provides it
// without asking the file's file system, which may be a FUSE server that does not answer.
bool is_called_nvidia(int folder, const char* name)
{
    std::array<char, 4096> text;
    const ssize_t length = readlinkat(folder, name, text.data(), text.size());
    if (length <= 0)
        return false;
    const std::string_view target(text.data(), static_cast<size_t>(length));
    return target.substr(target.rfind('/') + 1).starts_with("nvidia");
}

// Returns the minor number of a file, if it is a device with this major number. Its name is not checked, because any
// file can have that name. With AT_STATX_DONT_SYNC (Linux 4.20), the kernel does not ask FUSE servers, which might not
// answer.
std::optional<unsigned> minor_of(int folder, const char* name, unsigned major)
{
    struct statx status {};
    if (statx(folder, name, AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 || !S_ISCHR(status.stx_mode) ||
        status.stx_rdev_major != major)
        return std::nullopt;
    return status.stx_rdev_minor;
}

} // namespace

std::optional<std::set<unsigned>> open_gpu_files(pid_t pid, const std::string& proc)
{
    auto minors = open_nvidia_files(pid, nvidia_major, proc);
    if (minors)
        std::erase_if(*minors, [](unsigned minor) { return minor > max_gpu_minor; });
    return minors;
}

std::optional<std::set<unsigned>> open_nvidia_files(pid_t pid, unsigned major, const std::string& proc)
{
    const Directory folder(opendir(fmt::format("{}/{}/fd", proc, running_thread(pid).value_or(pid)).c_str()));
    if (!folder)
        return std::nullopt;
    std::set<unsigned> minors;
    size_t seen = 0;
    while (const dirent* const entry = readdir(folder.get())) {
        if (++seen > max_files)
            return std::nullopt;
        if (!is_called_nvidia(dirfd(folder.get()), entry->d_name))
            continue;
        if (const auto minor = minor_of(dirfd(folder.get()), entry->d_name, major))
            minors.insert(*minor);
    }
    return minors;
}

namespace {

constexpr uint32_t nvidia_ctl_minor = 255;
constexpr uint32_t nvidia_modeset_minor = 254;
constexpr uint32_t drm_major = 226;
constexpr uint32_t first_render_minor = 128;

// Returns the major numbers of the character devices in /proc/devices, by name.
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

// Reads the device number from a file such as /sys/class/drm/renderD128/dev, which contains "226:128".
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

namespace {

constexpr size_t mig_minors_max = 4 << 20; // bytes; enough for a line for each possible instance of 32 GPUs

// Consumes a name and the number after it, as in "gpu0".
std::optional<unsigned> consume_named_number(std::string_view& text, std::string_view name)
{
    if (!text.starts_with(name))
        return std::nullopt;
    std::string_view rest = text.substr(name.size());
    const auto number = consume_number<unsigned>(rest);
    if (!number || *number > UINT16_MAX)
        return std::nullopt;
    text = rest;
    return number;
}

} // namespace

std::map<unsigned, MigAccess> parse_mig_minors(std::string_view text)
{
    std::map<unsigned, MigAccess> minors;
    while (!text.empty()) {
        std::string_view line = next_part(text, '\n');
        const auto gpu = consume_named_number(line, "gpu");
        const auto instance = gpu ? consume_named_number(line, "/gi") : std::nullopt;
        if (!instance)
            continue; // a line such as "config 1" or "monitor 2"
        const auto compute = consume_named_number(line, "/ci");
        if (const auto minor = consume_named_number(line, "/access "))
            minors[*minor] = {*gpu, static_cast<uint16_t>(*instance),
                              compute ? std::optional(static_cast<uint16_t>(*compute)) : std::nullopt};
    }
    return minors;
}

std::set<MigAccess> most_specific(std::set<MigAccess> all)
{
    std::erase_if(all, [&](const MigAccess& access) {
        // A GPU instance precedes its compute instances, because nullopt is less than any number.
        const auto next = all.upper_bound(access);
        return !access.compute_instance && next != all.end() && next->gpu_minor == access.gpu_minor &&
               next->gpu_instance == access.gpu_instance;
    });
    return all;
}

MigFiles::MigFiles(const std::string& root) : major_(character_major("nvidia-caps", root))
{
    if (const auto text =
            major_ ? read_text(root + "/proc/driver/nvidia-caps/mig-minors", mig_minors_max) : std::nullopt)
        by_minor_ = parse_mig_minors(*text);
}

std::set<MigAccess> MigFiles::access_of(pid_t pid, const std::string& proc) const
{
    std::set<MigAccess> found;
    if (!major_ || by_minor_.empty())
        return found;
    for (const unsigned minor : open_nvidia_files(pid, *major_, proc).value_or(std::set<unsigned>()))
        if (const auto access = at(minor))
            found.insert(*access);
    return most_specific(std::move(found));
}

std::optional<MigAccess> MigFiles::at(unsigned minor) const
{
    const auto access = by_minor_.find(minor);
    return access == by_minor_.end() ? std::nullopt : std::optional(access->second);
}

} // namespace gpusnoop
