// SPDX-License-Identifier: Apache-2.0
#include "gpu/amd_devices.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t devices_max = 256;
const std::string topology = "sys/class/kfd/kfd/topology/nodes";

std::string trimmed(const std::optional<std::string>& text)
{
    const size_t end = text ? text->find_last_not_of(" \n\t") : std::string::npos;
    return end == std::string::npos ? "" : text->substr(0, end + 1);
}

std::optional<uint64_t> number_of(const HostFiles& host, const std::string& path)
{
    return only_number(host.read(path).value_or(""));
}

bool is_card(std::string_view name)
{
    return name.starts_with("card") && only_number(name.substr(4)); // card0-DP-1 is where a screen is plugged in
}

// Lines of "key value".
std::map<std::string, uint64_t, std::less<>> properties_of(const std::string& text)
{
    std::map<std::string, uint64_t, std::less<>> found;
    for (std::string_view rest = text; !rest.empty();) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const size_t blank = line.find(' ');
        if (blank != std::string_view::npos)
            if (const auto number = only_number(line.substr(blank + 1)))
                found.emplace(line.substr(0, blank), *number);
    }
    return found;
}

// 90402 -> "gfx942": version, release and step, of which the last two are hexadecimal digits.
std::string target_name(uint64_t version)
{
    return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

// What KFD says of it. Parts of one device (MI300's CPX mode) have its address, and their number above bit 28.
void add_node(std::vector<AmdDevice>& devices, const HostFiles& host, const std::string& node)
{
    const std::string id = trimmed(host.read(node + "/gpu_id"));
    if (id.empty() || id == "0") // a CPU, or one that this container may not use
        return;
    const auto properties = properties_of(host.read(node + "/properties").value_or(""));
    const auto at = [&](std::string_view key) {
        const auto found = properties.find(key);
        return found == properties.end() ? uint64_t{0} : found->second;
    };
    const uint64_t place = at("location_id") & 0xffff; // bus << 8 | device << 3 | function
    const std::string pci =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", at("domain"), place >> 8, place >> 3 & 0x1f, place & 7);
    const auto device = std::ranges::find(devices, pci, &AmdDevice::pci);
    if (device == devices.end())
        return;
    device->kfd_ids.insert(id);
    if (const uint64_t in_unit = at("simd_per_cu"))
        device->compute_units += static_cast<unsigned>(at("simd_count") / in_unit);
    if (device->uuid.empty() && at("unique_id"))
        device->uuid = fmt::format("GPU-{:016x}", at("unique_id"));
    if (device->name.empty() && at("gfx_target_version"))
        device->name = "AMD " + target_name(at("gfx_target_version"));
}

std::optional<double> power_watts(const AmdDevice& device, const HostFiles& host)
{
    for (const std::string& monitor : host.list(device.folder + "/hwmon"))
        for (const char* file : {"power1_average", "power1_input"}) // microwatts; some chips have but one of them
            if (const auto power = number_of(host, fmt::format("{}/hwmon/{}/{}", device.folder, monitor, file)))
                return static_cast<double>(*power) / 1e6;
    return std::nullopt;
}

} // namespace

std::optional<uint64_t> only_number(std::string_view text)
{
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view rest(end, text.size() - static_cast<size_t>(end - text.data()));
    const bool is_all = error == std::errc() && rest.find_first_not_of(" \n\t") == std::string_view::npos;
    return is_all ? std::optional(value) : std::nullopt;
}

std::vector<AmdDevice> find_amd_devices(const std::string& root)
{
    const HostFiles host(root.empty() ? "/" : root);
    std::vector<AmdDevice> devices;
    for (const std::string& card : host.list("sys/class/drm")) {
        std::error_code none;
        const std::string folder = "sys/class/drm/" + card + "/device";
        if (devices.size() >= devices_max || !is_card(card) ||
            std::filesystem::read_symlink(root + "/" + folder + "/driver", none).filename() != "amdgpu")
            continue;
        std::string name = printable(trimmed(host.read(folder + "/product_name")));
        devices.push_back({.pci = std::filesystem::read_symlink(root + "/" + folder, none).filename(),
                           .folder = folder,
                           .name = name.empty() || name.starts_with("AMD") ? name : "AMD " + name,
                           .uuid = {},
                           .kfd_ids = {}});
        if (const std::string id = printable(trimmed(host.read(folder + "/unique_id"))); !id.empty())
            devices.back().uuid = "GPU-" + id;
    }
    std::ranges::sort(devices, {}, &AmdDevice::pci);
    for (const std::string& node : host.list(topology))
        add_node(devices, host, topology + "/" + node);
    for (AmdDevice& device : devices)
        if (device.name.empty())
            device.name = printable("AMD " + trimmed(host.read(device.folder + "/device")));
    return devices;
}

NvmlDeviceState amd_device_state(const AmdDevice& device, unsigned index, const HostFiles& host)
{
    NvmlDeviceState state;
    state.index = index;
    state.name = device.name;
    state.pci = device.pci;
    state.uuid = device.uuid;
    state.vendor = GpuVendor::amd;
    if (trimmed(host.read(device.folder + "/power/runtime_status")) == "suspended")
        return state;
    if (const auto busy = number_of(host, device.folder + "/gpu_busy_percent"); busy && *busy <= 100)
        state.utilization = static_cast<unsigned>(*busy);
    const auto used = number_of(host, device.folder + "/mem_info_vram_used");
    const auto total = number_of(host, device.folder + "/mem_info_vram_total");
    if (used && total && *used <= *total) {
        state.memory_used = used;
        state.memory_total = total;
    }
    state.power_watts = power_watts(device, host);
    return state;
}

} // namespace gpusnoop
