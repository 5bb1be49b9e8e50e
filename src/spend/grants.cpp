// SPDX-License-Identifier: Apache-2.0
#include "spend/grants.hpp"

#include "spend/ledger.hpp"
#include "util/error.hpp"
#include "who/cgroup.hpp"
#include "who/host_files.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace gpusnoop {
namespace {

constexpr uint64_t pause_ns = 5'000'000'000;

} // namespace

std::vector<std::string> visible_devices(std::string_view value)
{
    std::vector<std::string> names;
    for (std::string_view rest = value; !rest.empty() && names.size() < 64;) {
        const size_t end = std::min(rest.find(','), rest.size());
        const std::string_view name = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (!name.empty() && name != "all" && name != "none" && name != "void")
            names.emplace_back(name);
    }
    return names;
}

// Which devices there are may be known from there alone.
Grants::Grants(const std::string& host_root) : host_root_(host_root), owners_(host_root)
{
    read_checkpoint();
}

uint64_t Grants::parts(const std::string& device) const
{
    const auto found = kubelet_.parts.find(device);
    return found == kubelet_.parts.end() ? 1 : std::max<uint64_t>(found->second, 1);
}

void Grants::refresh(const MachineGpus& gpus, uint64_t now_ns)
{
    if (now_ns < next_look_ns_)
        return;
    next_look_ns_ = now_ns + pause_ns;
    read_checkpoint();
    if (!gpus.all().empty())
        look(gpus);
}

// The kubelet replaces it in one step. One that cannot be read is told once, and what was known goes on.
void Grants::read_checkpoint()
{
    const auto text = HostFiles(host_root_).read(kubelet_checkpoint);
    if (!text) {
        kubelet_ = {};
        return;
    }
    KubeletDevices devices = parse_kubelet_checkpoint(*text);
    if (devices.readable)
        kubelet_ = std::move(devices);
    else if (!std::exchange(complained_, true))
        warn(fmt::format("the kubelet's checkpoint of devices cannot be read: /{}", kubelet_checkpoint));
}

void Grants::look(const MachineGpus& gpus)
{
    all_.clear();
    stale_ = unknown_ = 0;
    std::map<std::string, std::vector<Given>> pods; // what lives of each: its own cgroup, and those of its containers
    std::set<std::pair<uint64_t, uint64_t>> alive;
    for (const ContainerCgroup& found : container_cgroups(host_root_)) {
        Given given{.cgroup = {}, .pod_uid = found.owner.pod_uid, .container_id = found.owner.container_id};
        given.cgroup.v2 = found.id;
        alive.emplace(given.cgroup.v2, given.cgroup.v1);
        owners_.learn(given.cgroup, found.path, "");
        const Owner& owner = owners_.owner(given.cgroup);
        if (given.pod_uid.empty())
            given.pod_uid = owner.pod_uid();
        given.container = owner.names.container;
        if (!given.pod_uid.empty())
            pods[given.pod_uid].push_back(given);
        if (!given.container_id.empty())
            add_configured(given, owner, gpus);
    }
    owners_.forget_unless([&](const cgroups& ids) { return alive.contains({ids.v2, ids.v1}); });
    for (const Grant& grant : kubelet_.grants) {
        const auto pod = pods.find(grant.pod_uid);
        if (pod == pods.end()) {
            stale_++;
            continue;
        }
        const MachineGpu* gpu = gpus.named(grant.device);
        if (!gpu) {
            unknown_++;
            continue;
        }
        const auto container = std::ranges::find(pod->second, grant.container, &Given::container);
        Given given = container == pod->second.end() ? pod->second.front() : *container;
        if (container == pod->second.end())
            given.container_id.clear();
        given.container = grant.container;
        given.device = gpu->id;
        given.parts = parts(grant.device) > 1 ? grant.parts : 0;
        given.source = HELD_BY_KUBELET;
        all_.push_back(std::move(given));
    }
}

void Grants::add_configured(const Given& container, const Owner& owner, const MachineGpus& gpus)
{
    const auto add = [&](const MachineGpu* gpu, uint8_t source) {
        if (!gpu)
            return;
        Given given = container;
        given.device = gpu->id;
        given.source = source;
        all_.push_back(std::move(given));
    };
    for (const std::string& name : visible_devices(owner.names.visible_devices))
        add(gpus.named(name), HELD_BY_ENVIRONMENT);
    for (const unsigned minor : owner.names.gpu_files)
        add(gpus.at({Gpu::By::file, static_cast<uint16_t>(minor)}), HELD_BY_CONFIG);
}

} // namespace gpusnoop
