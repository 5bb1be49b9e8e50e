// SPDX-License-Identifier: Apache-2.0
// A line that is about a process, not a call of it: when, who, whose, and what a tool has to say.
#pragma once

#include "rows/field.hpp"
#include "rows/output.hpp"
#include "who/processes.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusnoop {

// What each of them has. A tool's own has more.
struct ProcessLine {
    uint64_t wall_ns = 0;
    Cell pid;
    Cell comm;
    const Owner* owner = nullptr; // null: nothing was seen of the process

    ProcessLine(const ImageId& image, Processes& processes, uint64_t time_ns);
    // As somebody else has told it.
    ProcessLine(Cell its_pid, Cell its_comm, uint64_t time_ns);
};

// They show the same whatever is asked for.
struct AnyRun {};

template<class Line>
using ProcessField = Field<AnyRun, Line>;

constexpr Shown in_any_run(const AnyRun&)
{
    return Shown::both;
}

// Lines begin with these. The tool's come behind, in its order.
std::span<const ProcessField<ProcessLine>> first_process_fields();

template<class Line>
std::vector<Column> process_line_columns(std::span<const ProcessField<Line>> own)
{
    std::vector<Column> all;
    auto add = [&](const auto& field) { all.push_back(shown_column(documented(field), field.shown({}))); };
    std::ranges::for_each(first_process_fields(), add);
    std::ranges::for_each(own, add);
    return all;
}

template<class Line>
void print_process_line(Output& output, std::span<const ProcessField<Line>> own, const Line& line, ExtraLines below)
{
    Row row;
    auto add = [&](const auto& field) { row.push_back(field.value(line, {})); };
    std::ranges::for_each(first_process_fields(), add);
    std::ranges::for_each(own, add);
    output.event(process_line_columns(own), row, below);
}

} // namespace gpusnoop
