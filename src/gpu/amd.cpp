// SPDX-License-Identifier: Apache-2.0
#include "gpu/amd.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "who/cgroup_facts.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace gpusnoop {

namespace {

constexpr size_t devices_max = 256;
const std::string topology = "sys/class/kfd/kfd/topology/nodes";

std::optional<uint64_t> only_number(std::string_view text)
{
    return parse_number<uint64_t>(trimmed(text));
}

std::string line_of(const HostFiles& host, const std::string& path)
{
    return std::string(trimmed(host.read(path).value_or("")));
}

std::optional<uint64_t> number_of(const HostFiles& host, const std::string& path)
{
    return only_number(host.read(path).value_or(""));
}

bool is_card(std::string_view name)
{
    return name.starts_with("card") && only_number(name.substr(4)); // card0-DP-1 is a display connector
}

// Converts KFD's gfx_target_version to a name: 90402 -> "gfx942". The last four decimal digits are the minor version
// and the stepping, two digits each. Each of the two becomes one hexadecimal digit.
std::string target_name(uint64_t version)
{
    return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

// Adds the properties of a node in KFD's topology to the device with the same PCI address. All partitions of a device
// (MI300 in CPX mode) have the same address. The partition number, from bit 28 of location_id on, is ignored.
void add_node(std::vector<AmdDevice>& devices, const HostFiles& host, const std::string& node)
{
    const std::string id = line_of(host, node + "/gpu_id");
    if (id.empty() || id == "0") // the node is a CPU, or a GPU that this container may not use
        return;
    const std::string properties = host.read(node + "/properties").value_or("");
    const auto at = [&](std::string_view key) { return parse_flat(properties, key).value_or(0); };
    const uint64_t location = at("location_id") & 0xffff; // bus << 8 | device << 3 | function
    const std::string pci =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", at("domain"), location >> 8, location >> 3 & 0x1f, location & 7);
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
        for (const char* file : {"power1_average", "power1_input"}) // microwatts; some chips have only one of the files
            if (const auto power = number_of(host, fmt::format("{}/hwmon/{}/{}", device.folder, monitor, file)))
                return static_cast<double>(*power) / 1e6;
    return std::nullopt;
}

// For a suspended device, returns only its identity, because reading more would wake it up.
NvmlDeviceState amd_device_state(const AmdDevice& device, unsigned index, const HostFiles& host)
{
    NvmlDeviceState state;
    state.index = index;
    state.name = device.name;
    state.pci = device.pci;
    state.uuid = device.uuid;
    state.vendor = GpuVendor::amd;
    if (line_of(host, device.folder + "/power/runtime_status") == "suspended")
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

} // namespace

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
        std::string name = printable(line_of(host, folder + "/product_name"));
        devices.push_back({.pci = std::filesystem::read_symlink(root + "/" + folder, none).filename(),
                           .folder = folder,
                           .name = name.empty() || name.starts_with("AMD") ? name : "AMD " + name,
                           .uuid = {},
                           .kfd_ids = {}});
        if (const std::string id = printable(line_of(host, folder + "/unique_id")); !id.empty())
            devices.back().uuid = "GPU-" + id;
    }
    std::ranges::sort(devices, {}, &AmdDevice::pci);
    for (const std::string& node : host.list(topology))
        add_node(devices, host, topology + "/" + node);
    for (AmdDevice& device : devices)
        if (device.name.empty())
            device.name = printable("AMD " + line_of(host, device.folder + "/device"));
    return devices;
}

std::unique_ptr<Nvml> open_amd_gpus(unsigned first, const std::string& root)
{
    std::vector<AmdDevice> devices = find_amd_devices(root);
    return devices.empty() ? nullptr : std::make_unique<AmdGpus>(std::move(devices), first, root);
}

namespace {

constexpr uint64_t second = 1'000'000'000;
constexpr uint64_t search_interval = 10 * second; // pause between searches for processes that have a device open
constexpr uint64_t copies_interval = 5 * second;  // long, because each read makes the kernel query every queue
constexpr size_t clients_max = 1024;
constexpr size_t files_max = 4096; // open files examined per process
const std::string kfd_processes = "sys/class/kfd/kfd/proc";

// Contents of the fdinfo file of an open amdgpu device; see Documentation/gpu/drm-usage-stats.rst.
struct Descriptor {
    std::string pci, client;
    uint64_t bytes = 0, ns = 0;
};

// Parses a size such as "524 KiB". The unit may be KiB, MiB, or missing for bytes.
std::optional<uint64_t> bytes_in(std::string_view text)
{
    const size_t blank = std::min(text.find(' '), text.size());
    const std::string_view unit = text.substr(std::min(blank + 1, text.size()));
    const uint64_t factor = unit == "KiB" ? 1 << 10 : unit == "MiB" ? 1 << 20 : unit.empty() ? 1 : 0;
    const auto number = only_number(text.substr(0, blank));
    return number && factor && *number <= std::numeric_limits<uint64_t>::max() / factor
               ? std::optional(*number * factor)
               : std::nullopt;
}

std::optional<Descriptor> parse_descriptor(std::string_view text)
{
    Descriptor found;
    bool is_amdgpu = false;
    for_each_field(text, [&](std::string_view key, std::string_view value) {
        if (key == "drm-driver")
            is_amdgpu = value == "amdgpu";
        else if (key == "drm-pdev")
            found.pci = value;
        else if (key == "drm-client-id")
            found.client = value;
        else if (key == "drm-memory-vram")
            found.bytes = bytes_in(value).value_or(0);
        else if (key == "drm-engine-gfx" || key == "drm-engine-compute")
            found.ns += only_number(value.substr(0, value.find(' '))).value_or(0);
    });
    return is_amdgpu && !found.pci.empty() ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<uint32_t> pid_in(std::string_view name)
{
    const auto number = only_number(name);
    return number && *number && *number <= 1U << 22 ? std::optional(static_cast<uint32_t>(*number)) : std::nullopt;
}

} // namespace

std::optional<double> AmdCount::percent(uint64_t value_ns, uint64_t now_ns)
{
    const uint64_t before = max_.value_or(value_ns), then = then_ns_;
    const bool is_first = !max_;
    max_ = std::max(before, value_ns);
    then_ns_ = now_ns;
    if (is_first || now_ns <= then)
        return std::nullopt;
    return 100.0 * static_cast<double>(*max_ - before) / static_cast<double>(now_ns - then);
}

AmdGpus::AmdGpus(std::vector<AmdDevice> devices, unsigned first, const std::string& root)
    : devices_(std::move(devices)), first_(first), root_(root), host_(root.empty() ? "/" : root)
{}

std::vector<NvmlProcess> AmdGpus::processes()
{
    return held(clock_ns(CLOCK_MONOTONIC));
}

std::vector<NvmlUse> AmdGpus::process_use()
{
    return use(clock_ns(CLOCK_MONOTONIC));
}

std::vector<NvmlDeviceState> AmdGpus::states()
{
    std::vector<NvmlDeviceState> all;
    for (const AmdDevice& device : devices_)
        all.push_back(amd_device_state(device, first_ + static_cast<unsigned>(all.size()), host_));
    return all;
}

std::optional<size_t> AmdGpus::device_of_kfd(std::string_view id) const
{
    for (size_t i = 0; i < devices_.size(); i++)
        if (devices_[i].kfd_ids.contains(std::string(id)))
            return i;
    return std::nullopt;
}

// Reads the folder that KFD has for a process. Since Linux 7.3, a process may have several contexts; each has a
// subfolder with the same files.
void AmdGpus::read_kfd_folder(uint32_t pid, const std::string& folder)
{
    for (const std::string& name : host_.list(folder)) {
        if (name.starts_with("context_")) {
            if (folder.find("/context_") == std::string::npos)
                read_kfd_folder(pid, folder + "/" + name);
            continue;
        }
        constexpr std::string_view memory = "vram_";
        if (!name.starts_with(memory))
            continue;
        const std::string id = name.substr(memory.size());
        const auto device = device_of_kfd(id);
        const auto bytes = device ? only_number(host_.read(folder + "/" + name).value_or("")) : std::nullopt;
        if (!bytes)
            continue;
        Held& held = held_[{pid, *device}];
        held.kfd_bytes += *bytes;
        held.kfd.emplace_back(folder, id);
    }
    for (const std::string& queue : host_.list(folder + "/queues")) {
        const auto id = only_number(host_.read(folder + "/queues/" + queue + "/gpuid").value_or(""));
        if (const auto device = id ? device_of_kfd(std::to_string(*id)) : std::nullopt)
            held_[{pid, *device}].has_queues = true;
    }
}

void AmdGpus::read_kfd()
{
    for (const std::string& name : host_.list(kfd_processes))
        if (const auto pid = pid_in(name))
            read_kfd_folder(*pid, kfd_processes + "/" + name);
}

// Finds descriptors that may refer to DRM devices, by the text of their links in /proc/PID/fd. Reading a link never
// blocks. read_clients() verifies the descriptors with fdinfo. Returns false if the process has no open files.
bool AmdGpus::find_clients_in(const std::string& folder, uint32_t pid)
{
    std::error_code error;
    size_t seen = 0;
    for (std::filesystem::directory_iterator entry(root_ + "/" + folder + "/fd", error), end;
         !error && entry != end && ++seen <= files_max; entry.increment(error)) {
        std::error_code none;
        if (std::filesystem::read_symlink(entry->path(), none).string().find("/dri/") != std::string::npos)
            clients_[pid].push_back(fmt::format("{}/fdinfo/{}", folder, entry->path().filename().string()));
    }
    return seen > 0;
}

void AmdGpus::find_clients()
{
    clients_.clear();
    for (const std::string& name : host_.list("proc")) {
        const auto pid = pid_in(name);
        if (!pid || clients_.size() >= clients_max)
            continue;
        if (find_clients_in("proc/" + name, *pid))
            continue;
        // If the main thread has exited, /proc shows the open files only in the folders of the other threads.
        for (const std::string& thread : host_.list("proc/" + name + "/task"))
            if (thread != name && find_clients_in("proc/" + name + "/task/" + thread, *pid))
                break;
    }
}

void AmdGpus::read_clients()
{
    std::set<std::tuple<uint32_t, std::string, std::string>> seen; // a client may have several descriptors
    for (const auto& [pid, files] : clients_)
        for (const std::string& file : files) {
            const auto found = parse_descriptor(host_.read(file).value_or(""));
            if (!found || !seen.emplace(pid, found->pci, found->client).second)
                continue;
            const auto device = std::ranges::find(devices_, found->pci, &AmdDevice::pci);
            if (device == devices_.end())
                continue;
            Held& held = held_[{pid, static_cast<size_t>(device - devices_.begin())}];
            held.is_drm_client = true;
            held.drm_bytes += found->bytes;
            held.drm_ns += found->ns;
        }
}

std::vector<NvmlProcess> AmdGpus::held(uint64_t now_ns)
{
    held_.clear();
    read_kfd();
    if (now_ns >= find_ns_) {
        find_clients();
        find_ns_ = now_ns + search_interval;
    }
    read_clients();
    // Drops processes that have a device open but do not use it: ROCm's own tools open KFD, and HIP opens every render
    // node.
    std::erase_if(held_, [](const auto& item) {
        const Held& held = item.second;
        return !held.has_queues && !held.kfd_bytes && !held.drm_bytes && !held.drm_ns;
    });
    std::erase_if(counts_, [this](const auto& item) { return !held_.contains(item.first); });
    std::vector<NvmlProcess> all;
    for (const auto& [place, held] : held_) // the maximum, not the sum, because KFD's bytes may include those in fdinfo
        all.push_back({place.first, first_ + static_cast<unsigned>(place.second),
                       std::max(held.kfd_bytes, held.drm_bytes), std::nullopt, std::nullopt});
    std::ranges::stable_sort(all, {}, &NvmlProcess::device);
    return all;
}

std::vector<NvmlUse> AmdGpus::use(uint64_t now_ns)
{
    std::vector<NvmlUse> all;
    for (const auto& [place, held] : held_) {
        NvmlUse one{.pid = place.first, .device = first_ + static_cast<unsigned>(place.second), .sm_percent = {}};
        Counts& counts = counts_[place];
        std::optional<uint64_t> units, copies_us;
        const bool reads_copies = now_ns >= counts.copies_read_ns + copies_interval;
        for (const auto& [folder, id] : held.kfd) {
            const auto number = [&](const std::string& file) { return only_number(host_.read(file).value_or("")); };
            if (const auto now = number(fmt::format("{}/stats_{}/cu_occupancy", folder, id)))
                units = units.value_or(0) + *now;
            if (!reads_copies)
                continue;
            if (const auto spent = number(fmt::format("{}/sdma_{}", folder, id)))
                copies_us = copies_us.value_or(0) + *spent;
        }
        if (units && devices_[place.second].compute_units)
            one.cu_percent =
                std::min(100.0, 100.0 * static_cast<double>(*units) / devices_[place.second].compute_units);
        if (reads_copies) {
            counts.copies_percent = copies_us ? counts.copies.percent(*copies_us * 1000, now_ns) : std::nullopt;
            counts.copies_read_ns = now_ns;
        }
        one.sdma_percent = counts.copies_percent;
        if (held.is_drm_client && !held.has_queues) // fdinfo does not include work in KFD queues
            if (const auto percent = counts.engines.percent(held.drm_ns, now_ns))
                one.sm_percent = std::min(100.0, *percent);
        if (one.sm_percent || one.cu_percent || one.sdma_percent)
            all.push_back(one);
    }
    std::ranges::stable_sort(all, {}, &NvmlUse::device);
    return all;
}

} // namespace gpusnoop
