// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/groups.hpp"

#include "rows/process_gpus.hpp"
#include "tools/cudatop/call_results.hpp"

#include <algorithm>

namespace gpusnoop::cudatop {

template<class Settings>
Settings Groups::settings() const
{
    Settings all;
    all.view = view_;
    all.latency = true;
    return all;
}

Groups::Groups(const View& view, bool results, KernelNames& names, Processes& processes)
    : view_(view), results_(results), processes_(processes), launch_settings_(settings<LaunchSettings>()),
      graph_settings_(settings<GraphSettings>()), copy_settings_(settings<CopySettings>()),
      wait_settings_(settings<WaitSettings>()), memory_settings_(settings<AllocationSettings>()),
      driver_settings_(settings<DriverSettings>()), launches_(launch_settings_, names, processes),
      graphs_(graph_settings_, processes), copies_(copy_settings_, processes), waits_(wait_settings_, processes),
      polls_(wait_settings_, processes), memory_(memory_settings_, processes), driver_(driver_settings_, processes)
{
    launch_settings_.kernel = view.kernel;
    launch_settings_.failed_apart = true;
    copy_settings_.direction = true;
}

// True if an error of a wait is already counted as an error of a copy or free, because a synchronous copy or free is
// also a wait.
bool Groups::is_double_counted(const call_key& key) const
{
    return key.result && (key.wait.wait == WAIT_FREE || (key.wait.wait == WAIT_COPY && results_));
}

void Groups::add(const CallDelta& delta)
{
    switch (part_of(delta.key)) {
    case CallPart::launch:
    case CallPart::graph:
        launches_.add(delta);
        break;
    case CallPart::graph_life:
        graphs_.add(delta);
        break;
    case CallPart::copy:
        copies_.add(delta);
        break;
    case CallPart::wait:
        waits_.add(delta);
        if (is_double_counted(delta.key))
            double_counted_[call_group(view_, processes_, delta.key)] += delta[CALL_COUNT];
        break;
    case CallPart::poll:
        polls_.add(delta);
        break;
    case CallPart::memory:
        memory_.add(delta);
        break;
    case CallPart::driver:
        driver_.add(delta);
        break;
    }
    if (has_failed(delta.key) && !is_double_counted(delta.key))
        errors_[call_group(view_, processes_, delta.key)][error_name(delta.key)] += delta[CALL_COUNT];
    if (delta.key.device != DEVICE_UNKNOWN && delta.key.layer != LAYER_HIP) // HIP has its own device numbers
        devices_[call_group(view_, processes_, delta.key)].insert({Gpu::By::ordinal, delta.key.device});
}

void Groups::add(const Waiting::Part& part)
{
    (part_of(part.key) == CallPart::poll ? polls_ : waits_).add(part);
}

void Groups::add(const driver_call& pending, uint64_t now_ns)
{
    driver_.add(pending, now_ns);
}

void Groups::add_held(Holdings& holdings, const std::set<ImageId>& ended)
{
    memory_.add_held(holdings, ended);
}

void Groups::add_idle(const ImageId& image)
{
    call_key key{};
    key.image = image;
    key.device = DEVICE_UNKNOWN;
    CallKey group = call_group(view_, processes_, key);
    if (!view_.device) {
        idle_[group].insert(image);
        return;
    }
    for (const Gpu& gpu : view_.gpus->of(image).gpus)
        if (gpu.is_machine_wide()) {
            group.gpu = gpu;
            idle_[group].insert(image);
        }
}

void Groups::add_gpu(const Gpu& gpu)
{
    gpus_.insert(gpu);
}

std::map<Key, Group> Groups::joined() const
{
    std::map<Key, Group> all;
    // Returns the row that a group (of launches, copies, waits and so on) belongs to, and adds the group's processes to
    // the row.
    auto row = [&](const CallKey& key, const WhoSeen& who, const std::string& kernel = {}) -> Group& {
        Key whole;
        static_cast<CallKey&>(whole) = key;
        whole.kernel = kernel;
        Group& group = all[whole];
        group.who.images.insert(who.images.begin(), who.images.end());
        group.who.owners.insert(who.owners.begin(), who.owners.end());
        group.who.vendors |= who.vendors;
        return group;
    };
    for (const auto& [key, group] : launches_.groups()) {
        Group& whole = row(key, group.who, view_.kernel ? launch_name(key) : "");
        whole.launches = &group;
        whole.kernel = view_.kernel ? &key : nullptr;
    }
    for (const auto& [key, group] : graphs_.groups())
        row(key, group.who).graphs = &group;
    for (const auto& [key, group] : copies_.groups())
        row(key, group.who).copies.at(key.direction) = &group;
    for (const auto& [key, group] : waits_.groups()) {
        Group& whole = row(key, group.who);
        whole.waits = &group;
        if (const auto twice = double_counted_.find(key); twice != double_counted_.end())
            whole.double_counted = twice->second;
    }
    for (const auto& [key, group] : polls_.groups())
        row(key, group.who).polls = &group;
    for (const auto& [key, group] : memory_.groups())
        row(key, group.who).memory = &group;
    for (const auto& [key, group] : driver_.groups())
        row(key, group.who).driver = &group;
    for (const auto& [key, images] : idle_)
        for (const ImageId& image : images) {
            WhoSeen who;
            who.add(image, processes_.owner(image, {}));
            row(key, who);
        }
    for (const Gpu& gpu : gpus_) {
        Key key;
        key.gpu = gpu;
        all[key];
    }
    for (auto& [key, group] : all)
        if (const auto devices = devices_.find(key); devices != devices_.end())
            group.devices = devices->second;
    for (const auto& [key, errors] : errors_) {
        Key whole;
        static_cast<CallKey&>(whole) = key;
        if (const auto group = all.find(whole); group != all.end())
            group->second.error = std::ranges::max_element(errors, {}, [](const auto& e) { return e.second; })->first;
    }
    return all;
}

} // namespace gpusnoop::cudatop
