// SPDX-License-Identifier: Apache-2.0
// What is not traced, and why, in sentences; no more of them than anybody reads.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

class Complaints {
public:
    static constexpr size_t max = 256;

    void add(std::string why)
    {
        if (all_.size() < max)
            all_.push_back(std::move(why));
        else if (all_.size() == max)
            all_.emplace_back("more libraries cannot be traced; they are not listed");
    }
    const std::vector<std::string>& all() const { return all_; }

private:
    std::vector<std::string> all_;
};

} // namespace gpusnoop
