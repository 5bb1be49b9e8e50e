// SPDX-License-Identifier: Apache-2.0
// A recording as its reader wants it: record by record, each with the run that it is of.
#pragma once

#include "output/record.hpp"
#include "output/recorded_lines.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// What the line says that a run begins with; where that is missing, tool and host are what others say.
struct RunOf {
    size_t number = 0; // of those in the recording
    std::string id;
    std::string tool, version, host, command_line;
};

// What was not handed out.
struct Unread {
    Damage damage;
    uint64_t not_json = 0;
    uint64_t other_schema = 0; // lines of runs whose keys may mean something else
};

// Gets each line but those that runs begin with, as it is read, and as it stands there.
using UseRecord = std::function<void(const RunOf&, const Record&, std::string_view line)>;

// files: one after the other. Throws Error where one cannot be read.
Unread read_recording(std::span<const std::string> files, const UseRecord& use);

} // namespace gpusnoop
