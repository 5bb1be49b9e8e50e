// SPDX-License-Identifier: Apache-2.0
// With -n all processes are known, for what one allocates or creates may be for a thread with the name. Shown are those
// that are called so, and those that have counted.
#pragma once

#include "tools/cudatop/diagnosis.hpp"
#include "who/processes.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace gpusnoop::cudatop {

class AskedFor {
public:
    // name: empty for all.
    AskedFor(const std::string& name, Processes& processes) : name_(name), processes_(processes) {}

    void saw(const ImageId& image) { seen_.insert(image); } // its calls have counted, or go on
    void forget(const ImageId& image) { seen_.erase(image); }

    bool has(const ImageId& image) const
    {
        return name_.empty() || seen_.contains(image) || processes_.info(image).comm.find(name_) != std::string::npos;
    }

    size_t processes() const
    {
        if (name_.empty())
            return processes_.pids().size();
        std::set<uint32_t> pids;
        for (const ImageId& image : processes_.images())
            if (has(image))
                pids.insert(image.pid);
        return pids.size();
    }

    std::vector<const Verdict*> of(const std::vector<Verdict>& all) const
    {
        std::vector<const Verdict*> wanted;
        for (const Verdict& verdict : all)
            if (name_.empty() || seen_.contains(verdict.process) || verdict.name.find(name_) != std::string::npos)
                wanted.push_back(&verdict);
        return wanted;
    }

private:
    const std::string& name_;
    Processes& processes_;
    std::set<ImageId> seen_;
};

} // namespace gpusnoop::cudatop
