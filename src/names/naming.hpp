// SPDX-License-Identifier: Apache-2.0
// Set of kernels without names, and schedule of the naming probes. These probes serve only to learn names, and add a
// second probe to each runtime launch. Therefore, they are attached for one second at a time, and less and less often
// while no names are learned.
#pragma once

#include "bpf/shared/call.h"
#include "bpf/shared/probe.h"
#include "names/kernel_names.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace gpusnoop {

// Handles of launched kernels that have no name yet.
class UnnamedKernels {
public:
    void add(const ImageId& image, uint64_t handle)
    {
        std::set<uint64_t>& handles = handles_[image];
        if (handles.size() < handles_max)
            handles.insert(handle);
    }

    // If the call is a launch and its handle has no name, adds the handle. Does not add handles of runtime launches,
    // because their names are found without the naming probes.
    void note(KernelNames& names, const call_key& key)
    {
        if (!key.subject || key.kind != KIND_LAUNCH)
            return;
        if (names.name(key.image, key.subject))
            erase(key.image, key.subject);
        else if (key.layer != LAYER_RUNTIME)
            add(key.image, key.subject);
    }

    void retry(KernelNames& names)
    {
        for (auto& [image, handles] : handles_)
            std::erase_if(handles, [&](uint64_t handle) { return names.name(image, handle).has_value(); });
    }

    void forget(const ImageId& image) { handles_.erase(image); }

    size_t size() const
    {
        size_t all = 0;
        for (const auto& [image, handles] : handles_)
            all += handles.size();
        return all;
    }

private:
    static constexpr size_t handles_max = 4096; // per process, because a process may invent any number of handles

    void erase(const ImageId& image, uint64_t handle)
    {
        if (const auto handles = handles_.find(image); handles != handles_.end())
            handles->second.erase(handle);
    }

    std::map<ImageId, std::set<uint64_t>> handles_;
};

class NamingSchedule {
public:
    // To be called once a second. unnamed: number of handles without a name. Returns true if the probes should be
    // attached until the next call.
    bool tick(size_t unnamed)
    {
        if (std::exchange(first_, false))
            return attached_ = true; // lookups of kernels before tracing began were not traced, so names are missing
        if (unnamed == 0 || unnamed != last_unnamed_)
            pause_ = shortest_pause; // names were learned, or there are new handles
        last_unnamed_ = unnamed;
        if (unnamed == 0)
            return attached_ = false;
        if (attached_) {
            until_next_ = pause_;
            pause_ = std::min(2 * pause_, longest_pause);
            return attached_ = false;
        }
        if (until_next_ > 0)
            until_next_--;
        return attached_ = until_next_ == 0;
    }

private:
    static constexpr unsigned shortest_pause = 1; // seconds
    static constexpr unsigned longest_pause = 64;

    bool first_ = true;
    bool attached_ = false;
    unsigned pause_ = shortest_pause;
    unsigned until_next_ = 0;
    size_t last_unnamed_ = 0;
};

} // namespace gpusnoop
