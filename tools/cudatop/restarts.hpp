// SPDX-License-Identifier: Apache-2.0
// Detection of restart loops: processes with the same name, in the same container, service or cgroup, that exit and
// start again.
#pragma once

#include "proc/mapped_file.hpp"
#include "tools/cudatop/rules.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

class Restarts {
public:
    // Times are CLOCK_BOOTTIME.
    struct Process {
        Verdict identity; // only process, name and owner are set
        uint64_t start_ns = 0;
        std::string place{};       // the process's container, pod, job, service or cgroup
        bool is_contained = false; // true in a container or pod, where a restarted process may have another parent
        uint32_t parent = 0;       // pid of the parent; 0: unknown
    };
    struct Loop {
        Verdict newest; // the newest process; only process, name, owner, `exited` and `group` are set
        uint64_t starts = 0;
        double seconds = 0;       // time since the first start
        std::string last_error{}; // empty: none
        std::string next{};       // the command to type next for that error
    };

    void started(const Process& process);
    void ended(uint32_t pid, uint64_t now_ns);
    // Records that calls of the process fail. The process is running or has just exited.
    void failed(const ImageId& image, std::string error, std::string next);
    // Id of the process's group, whose processes may be restarts of each other; 0: unknown.
    uint64_t group_of(const ImageId& image) const;

    // Forgets processes that started too long ago, then returns the loops that have not ended.
    std::vector<Loop> loops(uint64_t now_ns);

private:
    struct Life {
        ImageId image;
        uint64_t start_ns = 0;
        uint64_t end_ns = 0; // 0 if the process is running
        std::string error{}; // text of the verdict on the process's failed calls; empty: no verdict
        std::string next{};  // command that the verdict suggests
    };
    using Key = std::pair<std::string, std::string>; // name and place
    struct Group {
        std::deque<Life> lives; // in the order in which they started
        Verdict newest;         // the newest process; only process, name and owner are set
        Key key;
        uint32_t parent = 0;
    };

    static bool differs(const Group& group, const Process& process);
    void expire(uint64_t now_ns);
    Life* life_of(const ImageId& image);

    std::map<uint64_t, Group> groups_;
    std::map<Key, uint64_t> by_key_;
    std::map<ImageId, uint64_t> by_image_;
    uint64_t last_group_ = 0;
};

} // namespace gpusnoop
