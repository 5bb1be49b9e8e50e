// SPDX-License-Identifier: Apache-2.0
// What has no name yet, and when to hold the probes that only teach names. Each runtime launch costs a second probe
// while they are there, so they are held for a second at a time, and less and less often while they teach nothing.
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

// Handles of kernels that were launched and have no name yet: some thousands of each process, which may make up more.
class UnnamedKernels {
public:
    void add(const ImageId& image, uint64_t handle)
    {
        std::set<uint64_t>& handles = handles_[image];
        if (handles.size() < handles_max)
            handles.insert(handle);
    }

    // A row of calls: it may be one. Launches at the runtime have other ways to their names.
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
    static constexpr size_t handles_max = 4096; // of a process

    void erase(const ImageId& image, uint64_t handle)
    {
        if (const auto handles = handles_.find(image); handles != handles_.end())
            handles->second.erase(handle);
    }

    std::map<ImageId, std::set<uint64_t>> handles_;
};

class NamingSchedule {
public:
    // Once a second, with the number of launched handles that have no name: whether to hold the probes now.
    bool tick(size_t unnamed)
    {
        if (std::exchange(first_, false))
            return held_ = true; // what runs already had its names looked up before
        if (unnamed == 0 || unnamed != last_unnamed_)
            pause_ = shortest_pause; // it taught something, or there is something new to learn
        last_unnamed_ = unnamed;
        if (unnamed == 0)
            return held_ = false;
        if (held_) {
            until_next_ = pause_;
            pause_ = std::min(2 * pause_, longest_pause);
            return held_ = false;
        }
        if (until_next_ > 0)
            until_next_--;
        return held_ = until_next_ == 0;
    }

private:
    static constexpr unsigned shortest_pause = 1;
    static constexpr unsigned longest_pause = 64;

    bool first_ = true;
    bool held_ = false;
    unsigned pause_ = shortest_pause;
    unsigned until_next_ = 0;
    size_t last_unnamed_ = 0;
};

} // namespace gpusnoop
