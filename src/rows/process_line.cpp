// SPDX-License-Identifier: Apache-2.0
#include "rows/process_line.hpp"

#include "rows/who.hpp"

#include <utility>

namespace gpusnoop {
namespace {

using FirstField = ProcessField<ProcessLine>;

template<OwnerPart part>
Cell owner_value(const ProcessLine& line, const AnyRun&)
{
    return line.owner ? owner_cell(*line.owner, part) : Cell();
}

template<size_t... I>
std::vector<FirstField> first_fields(std::index_sequence<I...>)
{
    return {
        {{"TIME", "time", Unit::time, 8},
         in_any_run,
         [](const ProcessLine& l, const AnyRun&) { return Cell(l.wall_ns); },
         "Time of day at which it was detected."},
        {{"PID", "pid", Unit::count, 7},
         in_any_run,
         [](const ProcessLine& l, const AnyRun&) { return l.pid; },
         about_pid},
        {{"COMM", "comm", Unit::text, 15},
         in_any_run,
         [](const ProcessLine& l, const AnyRun&) { return l.comm; },
         "Name of the process."},
        {{"OWNER", "", Unit::text, 40}, in_any_run, owner_value<OwnerPart::text>, about_owner},
        {{"", owner_keys[I].key, owner_keys[I].unit},
         in_any_run,
         owner_value<owner_keys[I].part>,
         I ? "" : about_owner_keys}...,
    };
}

} // namespace

ProcessLine::ProcessLine(const ImageId& image, Processes& processes, uint64_t time_ns)
    : wall_ns(time_ns), pid(uint64_t{image.pid}), comm(processes.info(image).comm), owner(&processes.owner(image, {}))
{}

ProcessLine::ProcessLine(Cell its_pid, Cell its_comm, uint64_t time_ns)
    : wall_ns(time_ns), pid(std::move(its_pid)), comm(std::move(its_comm))
{}

std::span<const FirstField> first_process_fields()
{
    static const std::vector<FirstField> fields = first_fields(std::make_index_sequence<std::size(owner_keys)>());
    return fields;
}

} // namespace gpusnoop
