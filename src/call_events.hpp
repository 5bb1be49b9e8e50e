// SPDX-License-Identifier: Apache-2.0
// One line per call (-e): what all tools say of a call, around what a tool says of its own.
#pragma once

#include "call_view.hpp"
#include "event_who.hpp"
#include "output.hpp"
#include "table.hpp"

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

class CallEvents {
public:
    // middle: a tool's columns before latency and result; last: behind them.
    CallEvents(const Options& options, const CallSettings& settings, Processes& processes,
               std::span<const Probe> probes, std::initializer_list<Column> middle, std::initializer_list<Column> last);

    // Cells in the order of the tool's columns.
    using Cells = std::initializer_list<Cell>;
    void print(Output& output, const call_event& event, Cells middle, Cells last, std::span<const std::string> frames);

private:
    void fill(const call_event& event, Cells middle, Cells last);

    bool json_;
    bool of_functions_;
    bool latency_;
    bool results_;
    uint64_t wall_offset_ns_;
    EventWho who_;
    std::span<const Probe> probes_;
    std::vector<Column> columns_;
    Row row_; // used again for each line
    uint64_t first_ns_ = 0;
};

} // namespace gpusnoop
