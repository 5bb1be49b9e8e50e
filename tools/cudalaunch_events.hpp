// SPDX-License-Identifier: Apache-2.0
// One line per launch (-e).
#pragma once

#include "cudalaunch_columns.hpp"
#include "event_who.hpp"
#include "launches.hpp"

namespace gpusnoop {

class EventLines {
public:
    EventLines(const Options& options, const Settings& settings, Processes& processes);

    // what: the launch's kind, handle and kernel name.
    void print(Output& output, const launch_event& event, const GroupKey& what, const std::vector<std::string>& frames);

private:
    void fill(const launch_event& event, const GroupKey& what);

    bool json_;
    bool latency_;
    bool results_;
    uint64_t wall_offset_ns_;
    EventWho who_;
    std::vector<Column> columns_;
    Row row_; // used again for each line
    uint64_t first_ns_ = 0;
};

} // namespace gpusnoop
