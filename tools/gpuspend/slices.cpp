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

// Identifies the owner of a process or of an allocated device. If a process of the same owner already has a row for the
// device, the allocation gets no second row. Empty if the owner is no pod, container or job.
std::string owner_key(const Owner& owner)
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
    // Rows by pod show the owner for processes outside pods. Rows by process show the owner for allocations without a
    // process.
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

Tenant Slices::tenant_of(const GrantedDevice& granted)
{
    const Owner& owner = grants_.owner(granted);
    Tenant tenant{.id = id_of(owner, settings_.rows.container)};
    if (settings_.rows.container && granted.container_id.empty() && !granted.container.empty())
        tenant.id += " " + granted.container; // without an id, only the name distinguishes the containers of an owner
    remember(tenant, owner, nullptr, granted.container);
    return tenant;
}

// Returns all known processes: processes that the driver lists (even before their first call), processes in scope, and
// processes that have made calls.
std::set<ImageId> Slices::track(const std::set<ImageId>* scope)
{
    std::set<ImageId> all;
    for (const auto& [pid, process] : figures_.processes())
        all.insert(processes_.track(pid));
    if (scope)
        all.insert(scope->begin(), scope->end());
    for (const ImageId& image : processes_.images())
        all.insert(image);
    process_gpus_.refresh(std::vector<ImageId>(all.begin(), all.end()), clock_ns(CLOCK_MONOTONIC));
    for (const auto& [key, used] : used_)
        all.insert(key.first);
    return all;
}

// Returns the GPU that has this CUDA device number in the process; null if not known.
const MachineGpu* Slices::device_of_calls(const ImageId& image, uint8_t device) const
{
    call_key key{};
    key.image = image;
    key.device = device;
    const MachineGpu* const gpu = gpus_.at(process_gpus_.of_call(key));
    return !gpu && gpus_.all().size() == 1 ? &gpus_.all().front() : gpu; // with only one GPU, it must be that one
}

// Returns the only MIG instance that the process may use; null if it may use several instances, as monitoring tools
// often may.
const MachineGpu* Slices::instance_of(const ImageId& image)
{
    constexpr uint64_t pause_ns = 5'000'000'000;
    if (!gpus_.divided())
        return nullptr;
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    auto& [scanned_ns, access] = may_use_[image];
    if (!scanned_ns || now_ns - scanned_ns >= pause_ns) {
        scanned_ns = now_ns;
        access = mig_files_.access_of(static_cast<pid_t>(image.pid));
    }
    if (access.size() != 1)
        return nullptr;
    const MigAccess& one = *access.begin();
    return gpus_.at({Gpu::By::file, static_cast<uint16_t>(one.gpu_minor), one.gpu_instance,
                     one.compute_instance.value_or(Gpu::whole)});
}

// Returns the devices that the process's environment names: the id of each, with a bit mask of the variables that name
// it (enum HeldBy).
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
    const std::string owner = owner_key(processes_.owner(image, {}));
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
    // Attribute the process's activity to the device of its calls. If that device is not known, and the process holds
    // only one device, attribute the activity to that one.
    for (auto item = used_.lower_bound({image, 0}); item != used_.end() && item->first.first == image; ++item) {
        const MachineGpu* const gpu = device_of_calls(image, item->first.second);
        const std::string id = gpu ? gpu->id : held.size() == 1 ? held.begin()->first : std::string();
        (id.empty() ? to.slice.elsewhere[tenant] : to.devices[id][tenant].used).add(item->second);
    }
}

void Slices::add_grants(Pending& to, const std::set<Tenant>* scope)
{
    for (const GrantedDevice& granted : grants_.all()) {
        // Skip the allocation if a process of the same owner already has a row for this device.
        if (settings_.rows.of_processes() &&
            to.with_process.contains({granted.device, owner_key(grants_.owner(granted))}))
            continue;
        Tenant tenant = tenant_of(granted);
        if (scope && !scope->contains(tenant))
            tenant = others;
        Holder& holder = to.devices[granted.device][tenant];
        holder.sources |= granted.source;
        holder.parts += granted.parts;
        to.held[tenant].insert(granted.device);
    }
}

// Attributes activity on unknown devices to the tenant's device, if the tenant holds only one.
void Slices::assign_elsewhere(Pending& to)
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

// NVML has priority, because its values are newer than DCGM's. Compute instances have no counters.
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
                          .parent = gpu.device,
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

Slice Slices::next_slice(uint64_t ns, uint64_t now_ns, const Holdings& memory, const std::set<ImageId>* scope)
{
    figures_.refresh(now_ns);
    std::erase_if(may_use_, [&](const auto& item) {
        return now_ns - item.second.first > 60'000'000'000;
    }); // a process that was not scanned for a minute has exited
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
    std::set<Tenant> selected;
    for (const ImageId& image : track(scope)) {
        const bool is_selected = !scope || scope->contains(image);
        const Tenant tenant = is_selected ? tenant_of(image) : others;
        if (is_selected)
            selected.insert(tenant);
        const auto bytes = held.find(image);
        add_process(to, image, tenant,
                    bytes == held.end() ? std::optional<uint64_t>()
                                        : static_cast<uint64_t>(std::max<int64_t>(bytes->second, 0)));
    }
    add_grants(to, scope ? &selected : nullptr);
    assign_elsewhere(to);
    names_[others] = Tenant{.owner = "(others)"};
    add_devices(to);
    used_.clear();
    return std::move(to.slice);
}

} // namespace gpusnoop::gpuspend
