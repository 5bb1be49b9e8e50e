// SPDX-License-Identifier: Apache-2.0
// NVML's figures of device memory, by process, beside those that were counted.
#pragma once

#include "nvml.hpp"
#include "processes.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace gpusnoop {

class NvmlMemory {
public:
    // library: a path or soname instead of the usual one; "off": not to be asked. Says once why it cannot be.
    explicit NvmlMemory(const std::string& library);

    bool available() const { return nvml_ != nullptr; }

    // Asks again. Says once of each device why it does not answer.
    void refresh();

    // Of all devices; nullopt where it knows of none of the processes, or not how much.
    std::optional<uint64_t> of(const std::set<ImageId>& images) const;

private:
    std::unique_ptr<Nvml> nvml_;
    std::map<uint32_t, std::optional<uint64_t>> bytes_; // by pid
    std::set<unsigned> complained_;
};

} // namespace gpusnoop
