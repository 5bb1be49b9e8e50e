// SPDX-License-Identifier: Apache-2.0
// Processes that -n shows: processes with a matching name, and processes in which a matching thread made a call. The
// BPF programs report all processes even with -n, because a matching thread may use memory that another thread
// allocated.
#pragma once

#include "tools/cudatop/diagnosis.hpp"
#include "who/processes.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace gpusnoop::cudatop {

class NameFilter {
public:
    // name: empty if there is no filter.
    NameFilter(const std::string& name, Processes& processes) : name_(name), processes_(processes) {}

    // Call this when a matching thread of the process made a call, or has a call in flight.
    void mark_active(const ImageId& image) { active_.insert(image); }
    void forget(const ImageId& image) { active_.erase(image); }

    bool includes(const ImageId& image) const
    {
        return name_.empty() || active_.contains(image) || processes_.info(image).comm.find(name_) != std::string::npos;
    }

    size_t process_count() const
    {
        if (name_.empty())
            return processes_.pids().size();
        std::set<uint32_t> pids;
        for (const ImageId& image : processes_.images())
            if (includes(image))
                pids.insert(image.pid);
        return pids.size();
    }

    std::vector<const Verdict*> filter(const std::vector<Verdict>& all) const
    {
        std::vector<const Verdict*> included;
        for (const Verdict& verdict : all)
            if (name_.empty() || active_.contains(verdict.process) || verdict.name.find(name_) != std::string::npos)
                included.push_back(&verdict);
        return included;
    }

private:
    const std::string& name_;
    Processes& processes_;
    std::set<ImageId> active_;
};

} // namespace gpusnoop::cudatop
