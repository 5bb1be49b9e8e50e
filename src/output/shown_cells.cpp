// SPDX-License-Identifier: Apache-2.0
#include "output/shown_cells.hpp"

#include "base/text.hpp"
#include "rows/launch_groups.hpp"
#include "rows/thread_times.hpp"
#include "rows/who.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>

namespace gpusnoop {
namespace {

using R = Record;
using T = ShownTable;

bool is_count(double number)
{
    return number >= 0 && number < 0x1p63;
}

uint64_t count_in(const R& row, std::string_view key)
{
    const double number = row.number(key).value_or(0);
    return is_count(number) ? static_cast<uint64_t>(number) : 0;
}

Cell per_second(const R& row, const T& table, std::string_view key)
{
    const auto number = row.number(key);
    return number && table.seconds > 0 ? Cell(*number / table.seconds) : Cell();
}

Cell whole_per_second(const R& row, const T& table, std::string_view key)
{
    const auto number = row.number(key);
    return number && is_count(*number) && table.seconds > 0 ? Cell(static_cast<uint64_t>(*number / table.seconds))
                                                            : Cell();
}

Cell share(const R& row, std::string_view part, std::string_view whole)
{
    const auto some = row.number(part), all = row.number(whole);
    return some && all && *all > 0 ? Cell(100 * *some / *all) : Cell();
}

Cell mean(const R& row, std::string_view sum, std::string_view of)
{
    const uint64_t n = count_in(row, of);
    return row.number(sum) && n ? Cell(count_in(row, sum) / n) : Cell();
}

double sized(const R& row)
{
    return row.number("copies").value_or(0) - row.number("unsized").value_or(0);
}

// Number of launches. A graph launch counts as the kernels that it starts, unless these kernels have their own column.
uint64_t calls(const R& row, const T& table)
{
    const uint64_t graphs = count_in(row, "graph_launches");
    const bool expands = graphs && !table.has_graph_kernels && row.number("graph_kernels");
    return count_in(row, "launches") + count_in(row, "host_functions") +
           (expands ? count_in(row, "graph_launches_unknown") + count_in(row, "graph_kernels") : graphs);
}

std::string kernel_name(const R& row, const T& table)
{
    LaunchKey key;
    key.kind = row.number("launches")         ? KIND_LAUNCH
               : row.number("graph_launches") ? KIND_GRAPH_LAUNCH
               : row.number("host_functions") ? KIND_HOST_FUNC
                                              : KIND_LAUNCH;
    key.kernel = row.text("kernel");
    std::string_view handle = row.text("handle");
    if (handle.starts_with("0x"))
        key.handle = leading_number<uint64_t>(handle.substr(2), 16).value_or(key.handle);
    return shown_name(key, table.names);
}

Cell graph_kernels(const R& row, const T&)
{
    const uint64_t graphs = count_in(row, "graph_launches");
    if (graphs && (!row.number("graph_kernels") || graphs == count_in(row, "graph_launches_unknown")))
        return {};
    return count_in(row, "graph_kernels");
}

Cell of_nvml(const R& row, const T& table, std::string_view key)
{
    const R::Value* value = row.value(key);
    return value ? cell_of(*value, Unit::bytes) : table.nvml ? Cell() : Cell(std::string("n/a"));
}

Cell as_joined(const R& row, const Cell& cell)
{
    return row.text("join") == "aligned" ? estimate_of(cell) : cell;
}

template<OwnerPart part>
Cell owner(const R& row, const T&)
{
    Owner of;
    of.cgroup = row.text("cgroup");
    of.where.container_id = row.text("container_id");
    of.where.runtime = row.text("runtime");
    of.where.pod_uid = row.text("pod_uid");
    of.where.unit = row.text("unit");
    of.where.slurm_job = row.text("slurm_job");
    of.where.slurm_step = row.text("slurm_step");
    if (const auto uid = row.number("uid"); uid && *uid >= 0 && *uid < 0x1p32)
        of.where.uid = static_cast<uint32_t>(*uid);
    of.names.container = row.text("container");
    of.names.pod = row.text("pod");
    of.names.pod_namespace = row.text("namespace");
    return owner_cell(of, part);
}

struct Derived {
    std::string_view tool; // empty: any
    std::string_view name; // key or header of the column
    Cell (*cell)(const R&, const T&);
};

const Derived derived[] = {
    {"", "NAMESPACE", owner<OwnerPart::pod_namespace>},
    {"", "POD", owner<OwnerPart::pod_text>},
    {"", "CONTAINER", owner<OwnerPart::container_text>},
    {"", "OWNER", owner<OwnerPart::text>},
    {"", "CGROUP", owner<OwnerPart::cgroup_text>},

    {"cudalaunch", "KERNEL", [](const R& r, const T& t) { return Cell(kernel_name(r, t)); }},
    {"cudalaunch", "LAUNCHES", [](const R& r, const T& t) { return Cell(calls(r, t)); }},
    {"cudalaunch", "LAUNCH/s",
     [](const R& r, const T& t) {
         return t.seconds > 0 ? Cell(static_cast<double>(calls(r, t)) / t.seconds) : Cell();
     }},
    {"cudalaunch", "GRAPHKERN", graph_kernels},

    {"cudamemcpy", "FORM",
     [](const R& r, const T&) {
         const std::string_view form = r.text("form");
         return form.empty() ? Cell() : Cell(std::string(form == "async" ? "submit" : form));
     }},
    {"cudamemcpy", "BYTES/s", [](const R& r, const T& t) { return whole_per_second(r, t, "bytes"); }},
    {"cudamemcpy", "AVERAGE",
     [](const R& r, const T&) {
         return r.number("bytes") && sized(r) > 0 ? Cell(static_cast<uint64_t>(*r.number("bytes") / sized(r))) : Cell();
     }},
    {"cudamemcpy", "SYNC%", [](const R& r, const T&) { return share(r, "synchronous", "copies"); }},
    {"cudamemcpy", "<64K%",
     [](const R& r, const T&) {
         return r.number("small") && sized(r) > 0 ? Cell(100 * *r.number("small") / sized(r)) : Cell();
     }},

    {"gpualloc", "~",
     [](const R& r, const T&) { return Cell(std::string(r.number("approximate").value_or(0) != 0 ? "~" : " ")); }},
    {"gpualloc", "PINNED",
     [](const R& r, const T&) { return Cell(count_in(r, "pinned_bytes") + count_in(r, "registered_bytes")); }},
    {"gpualloc", "CHURN/s",
     [](const R& r, const T& t) {
         const double churn = r.number("allocated_bytes").value_or(0) + r.number("freed_bytes").value_or(0);
         return t.seconds > 0 ? Cell(static_cast<uint64_t>(churn / t.seconds)) : Cell();
     }},
    {"gpualloc", "NVML", [](const R& r, const T& t) { return of_nvml(r, t, "nvml_bytes"); }},
    {"gpualloc", "BEFORE+CTX", [](const R& r, const T& t) { return of_nvml(r, t, "before_attach_and_context_bytes"); }},

    {"cudagraph", "NODES",
     [](const R& r, const T&) {
         return r.number("nodes") ? Cell(std::to_string(count_in(r, "nodes"))) : Cell(std::string("?"));
     }},
    {"cudagraph", "KERN/s",
     [](const R& r, const T& t) {
         return r.number("unknown_launches").value_or(0) != 0 ? Cell() : per_second(r, t, "kernels_launched");
     }},

    {"cudagraph", "GRAPH%",
     [](const R& r, const T&) {
         const auto kernels = r.number("kernels_launched"), direct = r.number("direct_launches");
         const bool known = kernels && direct && *kernels + *direct > 0 && r.number("unknown_launches") == 0;
         return known ? Cell(100 * *kernels / (*kernels + *direct)) : Cell();
     }},
    {"cudagraph", "SETUP%",
     [](const R& r, const T& t) {
         const auto capture = r.number("capture_ns"), instantiate = r.number("instantiate_total_ns");
         return capture && instantiate && t.seconds > 0 ? Cell((*capture + *instantiate) / (t.seconds * 1e7)) : Cell();
     }},

    {"cudagap", "ONCPU%", [](const R& r, const T&) { return share(r, "on_cpu_ns", "known_wall_ns"); }},
    {"cudagap", "READY%", [](const R& r, const T&) { return share(r, "ready_ns", "known_wall_ns"); }},
    {"cudagap", "OFFCPU%", [](const R& r, const T&) { return share(r, "off_cpu_ns", "known_wall_ns"); }},
    {"cudagap", "SWITCH/s",
     [](const R& r, const T& t) {
         const auto blocked = r.number("switches_blocked"), preempted = r.number("switches_preempted");
         return blocked && preempted && t.seconds > 0 ? Cell((*blocked + *preempted) / t.seconds) : Cell();
     }},

    {"ncclwait", "RANKS",
     [](const R& r, const T&) {
         return r.number("ranks") && r.number("ranks_here")
                    ? Cell(fmt::format("{}/{}", count_in(r, "ranks_here"), count_in(r, "ranks")))
                    : Cell();
     }},
    {"ncclwait", "CALLS/s", [](const R& r, const T& t) { return per_second(r, t, "calls"); }},
    {"ncclwait", "BYTES/s", [](const R& r, const T& t) { return whole_per_second(r, t, "bytes"); }},
    {"ncclwait", "ENQ(us)", [](const R& r, const T&) { return mean(r, "enqueue_ns", "calls"); }},
    {"ncclwait", "WAIT(us)", [](const R& r, const T&) { return as_joined(r, mean(r, "wait_ns", "joined_calls")); }},
    {"ncclwait", "LAST%", [](const R& r, const T&) { return share(r, "last_calls", "joined_calls"); }},
    {"ncclwait", "LATE(us)", [](const R& r, const T&) { return as_joined(r, mean(r, "late_ns", "last_calls")); }},
    {"ncclwait", "SKEW50",
     [](const R& r, const T&) {
         const R::Value* value = r.value("skew_p50_ns");
         return value ? as_joined(r, cell_of(*value, Unit::ns_as_us)) : Cell();
     }},
    {"ncclwait", "SKEW99",
     [](const R& r, const T&) {
         const R::Value* value = r.value("skew_p99_ns");
         return value ? as_joined(r, cell_of(*value, Unit::ns_as_us)) : Cell();
     }},
    {"ncclwait", "CPU%", [](const R& r, const T&) { return share(r, "cpu_ns", "cpu_covered_ns"); }},
    {"ncclwait", "RUNQ%", [](const R& r, const T&) { return share(r, "run_queue_ns", "cpu_covered_ns"); }},
    {"ncclwait", "OP",
     [](const R& r, const T&) {
         const std::string_view all = r.text("op");
         const auto more = std::ranges::count(all, ',');
         const std::string first(all.substr(0, all.find(',')));
         return Cell(more ? fmt::format("{}+{}", first, more) : first);
     }},
};

const Derived* derived_of(const Column& column, std::string_view tool)
{
    const auto* const found = std::ranges::find_if(derived, [&](const Derived& one) {
        return (one.tool.empty() || one.tool == tool) && column.is_called(one.name) &&
               (column.key.empty() || !one.tool.empty());
    });
    return found == std::end(derived) ? nullptr : found;
}

// For a cudagap column such as LAUNCH%, returns the names of the activity that the column shows; else null.
const TimePartName* part_of_time(const Column& column, std::string_view tool)
{
    const auto* const found = std::ranges::find(time_part_names, column.header, &TimePartName::header);
    return tool == "cudagap" && column.key.empty() && found != time_part_names.end() ? found : nullptr;
}

// Marks a cell as a lower bound if the row's processes may hold memory that they allocated before tracing began, or as
// an estimate if calls were sampled.
Cell marked(const Cell& cell, const R& row, const Column& column)
{
    const auto* count = std::get_if<uint64_t>(&cell);
    if (count && column.is_level && row.number("live_is_lower_bound").value_or(0) != 0)
        return AtLeast{*count};
    return column.of_calls && row.number("sampled_percent") ? estimate_of(cell) : cell;
}

Cell plain_cell(const R& row, const Column& column, const T& table)
{
    if (const Derived* one = derived_of(column, table.tool))
        return one->cell(row, table);
    if (const auto* part = part_of_time(column, table.tool))
        return share(row, part->key, "wall_ns");
    constexpr std::string_view rate = "_per_second";
    if (column.key.ends_with(rate))
        if (Cell cell = per_second(row, table, column.key.substr(0, column.key.size() - rate.size()));
            !std::holds_alternative<std::monostate>(cell))
            return cell;
    // In a table grouped by thread, the column shows the thread's name (rows/report.hpp).
    const bool of_thread = table.threads && column.header == "COMM" && row.value("thread_comm");
    const R::Value* value = column.key.empty() ? nullptr : row.value(of_thread ? "thread_comm" : column.key);
    return value ? cell_of(*value, column.unit) : Cell();
}

} // namespace

Cell cell_of(const Record::Value& value, Unit unit)
{
    if (const auto* text = std::get_if<std::string>(&value))
        return *text;
    if (const auto* numbers = std::get_if<Record::Numbers>(&value)) {
        const bool fits =
            numbers->size() == 3 && std::ranges::all_of(*numbers, [](double one) { return one >= 0 && one < 0x1p32; });
        if (!fits || unit != Unit::dim3)
            return {};
        return Dim3{static_cast<uint32_t>((*numbers)[0]), static_cast<uint32_t>((*numbers)[1]),
                    static_cast<uint32_t>((*numbers)[2])};
    }
    const auto* number = std::get_if<double>(&value);
    if (!number)
        return {};
    if (unit == Unit::text)
        return fmt::format("{}", *number);
    if (unit == Unit::rate || unit == Unit::percent || std::fabs(*number) >= 0x1p63)
        return *number;
    return *number < 0 ? Cell(static_cast<int64_t>(*number)) : Cell(static_cast<uint64_t>(*number));
}

bool can_be_shown(const Column& column, std::string_view tool)
{
    return !column.key.empty() || derived_of(column, tool) || part_of_time(column, tool);
}

Cell shown_cell(const Record& row, const Column& column, const ShownTable& table)
{
    return marked(plain_cell(row, column, table), row, column);
}

} // namespace gpusnoop
