// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/slices.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop::gpuspend {
namespace {

const Tenant others{.id = "others"};

std::string id_of(const Owner& owner, bool by_container)
{
    if (by_container && owner.container())
        return "container " + owner.container_key();
    if (!owner.pod_uid().empty())
        return "pod " + owner.pod_uid();
    if (owner.container())
        return "container " + owner.container_key();
    if (!owner.where.slurm_job.empty())
        return "slurm " + owner.where.slurm_job;
    return "cgroup " + owner.cgroup;
}

// Of processes and of what they were given, so that both are not told of.
std::string whose(const Owner& owner)
{
    return owner.pod_uid().empty() && !owner.container() && owner.where.slurm_job.empty() ? "" : id_of(owner, false);
}

uint8_t source_of(GpuSource source)
{
    const bool listed = source == GpuSource::nvml || source == GpuSource::kfd;
    return listed ? HELD_BY_CONTEXT : source == GpuSource::files ? HELD_BY_FILE : HELD_BY_CALLS;
}

} // namespace

Slices::Slices(const Settings& settings, const std::string& host_root, Processes& processes, const Prices& prices,
               const Teams& teams)
    : settings_(settings), host_root_(host_root), processes_(processes), prices_(prices), teams_(teams),
      figures_(settings.nvml_library), process_gpus_(figures_), grants_(host_root),
      mig_files_(host_root == "/" ? "" : host_root), users_(host_root)
{
    if (!settings.dcgm.empty())
        dcgm_.emplace(settings.dcgm);
}

void Slices::add(const CallDelta& delta)
{
    const call_key& key = delta.key;
    process_gpus_.note_call(key);
    Used& used = used_[{key.image, key.device}];
    if (key.result || key.flags & CALL_RECORDED)
        return;
    switch (part_of(key)) {
    case CallPart::launch:
        used.launches += key.kind == KIND_HOST_FUNC ? 0 : delta[CALL_COUNT];
        break;
    case CallPart::graph:
        used.launches += delta[CALL_COUNT];
        used.graph_kernels += delta[GRAPH_KERNELS];
        break;
    case CallPart::copy:
        used.bytes += delta[COPY_BYTES];
        break;
    case CallPart::wait:
        used.wait_ns += delta[CALL_TOTAL_NS];
        break;
    default:
        break;
    }
}

void Slices::forget(const std::set<ImageId>& images)
{
    process_gpus_.forget(images);
    for (const ImageId& image : images)
        may_use_.erase(image);
    std::erase_if(used_, [&](const auto& item) { return images.contains(item.first.first); });
}

const Tenant& Slices::name(const Tenant& tenant) const
{
    const auto found = names_.find(tenant);
    return found == names_.end() ? tenant : found->second;
}

void Slices::remember(const Tenant& tenant, const Owner& owner, const ImageId* image, const std::string& container)
{
    const View& view = settings_.rows;
    Tenant name;
    const bool in_pod = !owner.pod_uid().empty();
    if (view.pod || view.container || view.pod_namespace)
        name.pod_namespace = owner.names.pod_namespace;
    if ((view.pod || view.container) && in_pod)
        name.pod = owner.names.pod.empty() ? owner.pod_uid() : owner.names.pod;
    if (view.container && (owner.container() || !container.empty()))
        name.container = container.empty() ? owner.container_name() : container;
    if (view.cgroup)
        name.cgroup = owner.cgroup;
    if (image && (view.pid || view.comm))
        name.comm = processes_.info(*image).comm;
    if (image && view.pid) {
        name.pid = image->pid;
        name.start_ns = processes_.info(*image).start_ns;
    }
    std::string user;
    if (image && (view.user || teams_.any()))
        user = users_.of(static_cast<pid_t>(image->pid)).value_or(names_[tenant].user);
    if (view.user)
        name.user = user;
    name.team = teams_.of(owner, user);
    // Who is in no pod is still somebody; a process that has no row of its own is at least its pod's.
    if ((view.pod || view.container) && !in_pod)
        name.owner = owner.text();
    else if ((view.pid || view.comm || view.user) && !image)
        name.owner = owner.text();
    names_[tenant] = name;
    if (in_pod)
        pods_[tenant].insert(owner.pod_uid());
}

Tenant Slices::tenant_of(const ImageId& image)
{
    const View& view = settings_.rows;
    const Owner& owner = processes_.owner(image, {});
    Tenant tenant;
    if (view.of_processes()) {
        tenant.pid = image.pid;
        tenant.start_ns = processes_.info(image).start_ns;
    } else {
        tenant.id = id_of(owner, view.container);
    }
    remember(tenant, owner, &image, {});
    return tenant;
}

Tenant Slices::tenant_of(const Given& given)
{
    const Owner& owner = grants_.owner(given);
    Tenant tenant{.id = id_of(owner, settings_.rows.container)};
    if (settings_.rows.container && given.container_id.empty() && !given.container.empty())
        tenant.id += " " + given.container; // whose cgroup is not known yet
    remember(tenant, owner, nullptr, given.container);
    return tenant;
}

// Those that the driver lists are known before they call.
std::set<ImageId> Slices::meet(const std::set<ImageId>* only)
{
    std::set<ImageId> all;
    for (const auto& [pid, process] : figures_.processes())
        all.insert(processes_.track(pid));
    if (only)
        all.insert(only->begin(), only->end());
    for (const ImageId& image : processes_.images())
        all.insert(image);
    process_gpus_.refresh(std::vector<ImageId>(all.begin(), all.end()), clock_ns(CLOCK_MONOTONIC));
    for (const auto& [key, used] : used_)
        all.insert(key.first);
    return all;
}

// Where its calls are for one of the machine's GPUs, and not only for a number of CUDA's.
const MachineGpu* Slices::device_of_calls(const ImageId& image, uint8_t device) const
{
    call_key key{};
    key.image = image;
    key.device = device;
    const MachineGpu* const told = gpus_.at(process_gpus_.of_call(key));
    return !told && gpus_.all().size() == 1 ? &gpus_.all().front() : told; // there is no other
}

// The one instance that its open files are for. A monitor may have those of all.
const MachineGpu* Slices::instance_of(const ImageId& image)
{
    constexpr uint64_t pause_ns = 5'000'000'000;
    if (!gpus_.divided())
        return nullptr;
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    auto& [looked_ns, access] = may_use_[image];
    if (!looked_ns || now_ns - looked_ns >= pause_ns) {
        looked_ns = now_ns;
        access = mig_files_.access_of(static_cast<pid_t>(image.pid));
    }
    if (access.size() != 1)
        return nullptr;
    const MigAccess& one = *access.begin();
    return gpus_.at({Gpu::By::file, static_cast<uint16_t>(one.gpu_minor), one.gpu_instance,
                     one.compute_instance.value_or(Gpu::whole)});
}

// By what it was started with.
std::map<std::string, uint8_t> Slices::granted_to(const ImageId& image)
{
    std::map<std::string, uint8_t> held;
    const Allotment& allotment = grants_.allotments().of(image.pid, processes_.info(image).start_ns);
    const auto add = [&](const std::string& list, HeldBy source) {
        for (const std::string& name : devices_in(list))
            if (const MachineGpu* const gpu = gpus_.named(name))
                held[gpu->id] |= source;
    };
    add(allotment.visible_devices, HELD_BY_ENVIRONMENT);
    if (!processes_.owner(image, {}).where.slurm_job.empty())
        add(allotment.slurm_gpus, HELD_BY_SLURM);
    return held;
}

void Slices::add_process(Pending& to, const ImageId& image, const Tenant& tenant, std::optional<uint64_t> memory)
{
    const OnGpus on = process_gpus_.of(image);
    std::map<std::string, uint8_t> held;
    for (const Gpu& gpu : on.gpus)
        if (const MachineGpu* one = gpus_.at(gpu))
            held[one->id] |= source_of(on.source);
    for (auto item = used_.lower_bound({image, 0}); item != used_.end() && item->first.first == image; ++item)
        if (const MachineGpu* one = device_of_calls(image, item->first.second))
            held[one->id] |= HELD_BY_CALLS;
    if (const MachineGpu* const instance = held.empty() ? instance_of(image) : nullptr)
        held[instance->id] |= HELD_BY_FILE;
    const std::map<std::string, uint8_t> granted = granted_to(image);
    if (held.empty() && granted.size() == 1)
        held = granted;
    const std::string owner = whose(processes_.owner(image, {}));
    const uint64_t ns = to.slice.ns;
    for (const auto& [id, sources] : held) {
        Holder& holder = to.devices[id][tenant];
        holder.sources |= sources;
        to.held[tenant].insert(id);
        if (!owner.empty())
            to.with_process.emplace(id, owner);
        const MachineGpu* const gpu = gpus_.named(id);
        if (!gpu || !gpu->index)
            continue;
        const double percent = figures_.sm_percent_of({image}, gpu->index).value_or(0);
        holder.used.busy_ns += static_cast<uint64_t>(std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(ns));
        if (const auto bytes = figures_.memory_of({image}, gpu->index))
            holder.used.byte_ns += uint128{*bytes} * ns;
        else if (memory && held.size() == 1)
            holder.used.byte_ns += uint128{*memory} * ns;
    }
    if (held.size() != 1 && memory && *memory && !figures_.memory_of({image}))
        to.slice.elsewhere[tenant].byte_ns += uint128{*memory} * ns;
    for (const auto& [id, sources] : granted) {
        to.devices[id][tenant].sources |= sources;
        to.held[tenant].insert(id);
        if (!owner.empty())
            to.with_process.emplace(id, owner);
    }
    // What it did: on the device that its calls tell, or the only one that it is on.
    for (auto item = used_.lower_bound({image, 0}); item != used_.end() && item->first.first == image; ++item) {
        const MachineGpu* const told = device_of_calls(image, item->first.second);
        const std::string id = told ? told->id : held.size() == 1 ? held.begin()->first : std::string();
        (id.empty() ? to.slice.elsewhere[tenant] : to.devices[id][tenant].used).add(item->second);
    }
}

void Slices::add_grants(Pending& to, const std::set<Tenant>* only)
{
    for (const Given& given : grants_.all()) {
        // A process of it has its row already, on this device.
        if (settings_.rows.of_processes() && to.with_process.contains({given.device, whose(grants_.owner(given))}))
            continue;
        Tenant tenant = tenant_of(given);
        if (only && !only->contains(tenant))
            tenant = others;
        Holder& holder = to.devices[given.device][tenant];
        holder.sources |= given.source;
        holder.parts += given.parts;
        to.held[tenant].insert(given.device);
    }
}

// What is known to be used by one who holds a single device is used there.
void Slices::settle(Pending& to)
{
    for (auto item = to.slice.elsewhere.begin(); item != to.slice.elsewhere.end();) {
        const auto held = to.held.find(item->first);
        if (held == to.held.end() || held->second.size() != 1) {
            ++item;
            continue;
        }
        to.devices[*held->second.begin()][item->first].used.add(item->second);
        item = to.slice.elsewhere.erase(item);
    }
    for (auto& [id, holders] : to.devices)
        for (auto& [tenant, holder] : holders) {
            const auto elsewhere = to.slice.elsewhere.find(tenant);
            holder.active =
                holder.used.launched() || (elsewhere != to.slice.elsewhere.end() && elsewhere->second.launched());
        }
}

// NVML first, whose figures are of this very second; DCGM's of its last look. Nobody measures a part of a GPU instance.
Gauges Slices::gauges_of(const MachineGpu& gpu) const
{
    Gauges gauges;
    if (gpu.compute)
        return gauges;
    for (const NvmlDeviceState& state : figures_.states()) {
        if (gpu.index != state.index)
            continue;
        if (!gpu.instance) {
            add_efficiency(gauges, state.efficiency);
            gauges.set_percent(Figure::gpu_busy, state.utilization, MEASURED_BY_NVML);
            gauges.set(Figure::memory_used, state.memory_used, MEASURED_BY_NVML);
        }
        for (const NvmlInstance& instance : state.instances)
            if (gpu.instance == instance.gpu_instance)
                add_efficiency(gauges, instance.efficiency);
    }
    if (!dcgm_)
        return gauges;
    if (const Gauges* const page = dcgm_->of(gpu.instance ? gpu.device : gpu.id, gpu.instance))
        for (size_t i = 0; i < figure_count; i++)
            gauges.set(static_cast<Figure>(i), page->values[i], MEASURED_BY_DCGM);
    return gauges;
}

void Slices::add_devices(Pending& to)
{
    const std::vector<uint64_t> times = gpus_.times(to.slice.ns);
    const uint64_t wall_ns = clock_ns(CLOCK_REALTIME);
    for (size_t i = 0; i < times.size(); i++) {
        const MachineGpu& gpu = gpus_.all()[i];
        DeviceSlice slice{.device = {gpu.id, prices_.of(gpu.model, wall_ns)},
                          .model = gpu.model,
                          .of = gpu.device,
                          .parts = grants_.parts(gpu.id),
                          .holders = {},
                          .gauges = gauges_of(gpu),
                          .ns = times[i]};
        for (auto& [tenant, holder] : to.devices[gpu.id]) {
            holder.tenant = tenant;
            slice.holders.push_back(std::move(holder));
        }
        to.slice.devices.push_back(std::move(slice));
    }
}

Slice Slices::take(uint64_t ns, uint64_t now_ns, const Holdings& memory, const std::set<ImageId>* only)
{
    figures_.refresh(now_ns);
    std::erase_if(may_use_, [&](const auto& item) { return now_ns - item.second.first > 60'000'000'000; }); // ended
    gpus_.refresh(figures_, host_root_, grants_.kubelet());
    if (dcgm_)
        dcgm_->refresh(now_ns);
    grants_.refresh(gpus_, now_ns);
    Pending to;
    to.slice.ns = ns;
    std::map<ImageId, int64_t> held;
    for (const auto& [row, amount] : memory.now())
        if (is_memory(row.memory.holding))
            held[row.image] += amount.bytes;
    std::set<Tenant> asked_for;
    for (const ImageId& image : meet(only)) {
        const bool asked = !only || only->contains(image);
        const Tenant tenant = asked ? tenant_of(image) : others;
        if (asked)
            asked_for.insert(tenant);
        const auto bytes = held.find(image);
        add_process(to, image, tenant,
                    bytes == held.end() ? std::optional<uint64_t>()
                                        : static_cast<uint64_t>(std::max<int64_t>(bytes->second, 0)));
    }
    add_grants(to, only ? &asked_for : nullptr);
    settle(to);
    names_[others] = Tenant{.owner = "(others)"};
    add_devices(to);
    used_.clear();
    return std::move(to.slice);
}

} // namespace gpusnoop::gpuspend
