// SPDX-License-Identifier: Apache-2.0
// Which files threads waited for in the longest blocks of gaps, and of what their wakers did.
#pragma once

#include "bpf/shared/gap.h"
#include "proc/process.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gpusnoop {

// "folder/file", as the kernel side has them; empty: not known.
std::string file_name(const char (&folder)[FOLDER_NAME], const char (&file)[FILE_NAME]);

// Of the gap, and of each of its wakers: "folder/file", as far as it is known; otherwise empty.
using GapFiles = std::array<std::string, WAKERS + 1>;

class BlockedFiles {
public:
    GapFiles of(const gap_record& gap);
    // Once a second: what processes have mapped is looked at anew.
    void tick()
    {
        mappings_.clear();
        looks_ = 0;
    }

private:
    std::string file_of(const waker& waker, uint32_t pid);
    std::string mapped_at(uint32_t pid, uint64_t address);

    std::map<uint32_t, std::vector<Mapping>> mappings_; // by pid
    size_t looks_ = 0;
};

} // namespace gpusnoop
