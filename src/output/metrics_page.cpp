// SPDX-License-Identifier: Apache-2.0
#include "output/metrics_page.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace gpusnoop {
namespace {

// Those that are counters come first.
enum class Kind : uint8_t {
    counter,     // adds up what the rows count
    nanoseconds, // the same, in seconds
    so_far,      // a counter that is told as it stands
    millionths,  // a counter, of money
    gauge,
    ratio, // a gauge, of a percentage
    one,   // a gauge: how many rows have these labels
};

constexpr std::string_view any = "*"; // rows of what the tool's --by says

// A family of series. Those of one name stand together, and differ in `labels`.
struct Family {
    std::string_view name;
    Kind kind;
    std::string_view rows; // the kind of row that has it
    std::string_view key;  // column
    std::string_view help;
    std::string_view labels = {};
};

constexpr Family families[] = {
    {"kernel_launches_total", Kind::counter, any, "launches", "Kernels launched directly, not by a graph."},
    {"graph_launches_total", Kind::counter, any, "graph_launches", "Graphs launched."},
    {"graph_kernels_total", Kind::counter, any, "graph_kernels",
     "Kernels started by graph launches, for graphs made since tracing began."},
    {"graph_captures_total", Kind::counter, any, "captures", "Captures that became graphs."},
    {"graph_instantiations_total", Kind::counter, any, "instantiates", "Instantiations of graphs."},
    {"copies_total", Kind::counter, any, "copies", "Copies, sets and prefetches."},
    {"copy_bytes_total", Kind::counter, any, "h2d_bytes", "Bytes copied.", R"(direction="h2d")"},
    {"copy_bytes_total", Kind::counter, any, "d2h_bytes", "", R"(direction="d2h")"},
    {"copy_bytes_total", Kind::counter, any, "d2d_bytes", "", R"(direction="d2d")"},
    {"sync_waits_total", Kind::counter, any, "waits", "Calls that waited for the device."},
    {"sync_wait_seconds_total", Kind::nanoseconds, any, "blocked_ns",
     "Time that threads spent in calls that wait for the device, added up over threads."},
    {"allocations_total", Kind::counter, any, "allocs", "Allocations of device memory."},
    {"frees_total", Kind::counter, any, "frees", "Frees of device memory."},
    {"allocation_failures_total", Kind::counter, any, "allocation_failures", "Allocations and frees that failed."},
    {"call_errors_total", Kind::counter, any, "errors", "Calls that returned an error, as far as results are traced."},
    {"driver_calls_total", Kind::counter, any, "ioctls", "Calls into the kernel's GPU driver."},
    {"driver_call_seconds_total", Kind::nanoseconds, any, "ioctl_ns", "Time spent in these calls."},
    {"live_bytes", Kind::gauge, any, "live_bytes",
     "Device memory allocated since tracing began and not freed; processes from before may hold more."},
    {"memory_bytes", Kind::gauge, any, "memory_bytes",
     "Device memory held: as the driver reports it, with NVML; else as far as it was seen to be allocated."},
    {"diagnosis", Kind::one, "diagnosis", "rule",
     "Processes (or threads) that this rule says something is wrong with."},
    {"gpu_utilization_ratio", Kind::ratio, "gpu", "gpu_percent", "How busy a GPU is, by its own counters."},
    {"gpu_memory_used_bytes", Kind::gauge, "gpu", "gpu_used_bytes", "Memory of a GPU that is used, by NVML."},
    {"gpu_memory_total_bytes", Kind::gauge, "gpu", "gpu_total_bytes", "Memory that a GPU has, by NVML."},
    {"gpu_power_watts", Kind::gauge, "gpu", "gpu_watts", "Power that a GPU draws, by NVML."},
    {"gpu_allocated_seconds_total", Kind::nanoseconds, "tenant", "allocated_ns",
     "Time of GPUs that were given to a row: of one in two time slices, half."},
    {"gpu_resident_seconds_total", Kind::nanoseconds, "tenant", "resident_ns",
     "Time that a row had a context on GPUs, or memory, added up over GPUs."},
    {"gpu_driving_seconds_total", Kind::nanoseconds, "tenant", "driving_ns",
     "Time in which a row made calls on GPUs, by the second, added up over GPUs."},
    {"gpu_used_seconds_total", Kind::nanoseconds, "tenant", "used_ns",
     "Time of GPUs that falls to a row that used them; with idle and unallocated, it adds up to all time of all GPUs."},
    {"gpu_idle_seconds_total", Kind::nanoseconds, "tenant", "idle_ns", "Time of GPUs that a row held and did not use."},
    {"gpu_unallocated_seconds_total", Kind::nanoseconds, "unallocated", "device_time_ns",
     "Time of GPUs that nobody was given, or held."},
    {"gpu_used_cost_total", Kind::millionths, "tenant", "cost_micros", "What the time used costs, by --prices."},
    {"gpu_idle_cost_total", Kind::millionths, "tenant", "idle_cost_micros", "What the idle time costs."},
    {"gpu_unallocated_cost_total", Kind::millionths, "unallocated", "cost_micros", "What the unallocated time costs."},
    {"xids_total", Kind::so_far, any, "xids", "Errors of GPUs (Xids) that the driver reported for processes of a row."},
    {"traced_processes", Kind::gauge, "total", "traced_processes", "Processes that are traced."},
    {"lost_events_total", Kind::so_far, "total", "lost",
     "What was lost since tracing began: figures are too low by it."},
    {"probes_cpu_ratio", Kind::ratio, "total", "probes_cpu_percent",
     "What the probes take from the traced processes, as a share of one CPU."},
    {"own_cpu_ratio", Kind::ratio, "total", "own_cpu_percent", "What the tracer itself takes, as a share of one CPU."},
};

// What says whose a row is: the column, the label that it makes, and which rows are told apart by it. Others may have
// it by chance, and would be other series as soon as they have not.
struct Label {
    std::string_view key, name;
    std::string_view rows; // words between blanks
};
constexpr Label labels_of_rows[] = {
    {"namespace", "namespace", " namespace pod container pid thread diagnosis tenant "},
    {"pod", "pod", " pod container pid thread diagnosis tenant "},
    {"container", "container", " container pid thread diagnosis tenant "},
    {"uid", "uid", " container "}, // of a container that a user named
    {"cgroup", "cgroup", " cgroup tenant "},
    {"pid", "pid", " pid thread tenant "},
    {"comm", "comm", " comm pid thread tenant "},
    {"team", "team", " tenant "},
    {"user", "user", " tenant "},
    {"owner", "owner", " tenant "},
    {"device", "UUID", " tenant "},
    {"currency", "currency", " tenant unallocated "},
    {"tid", "tid", " thread "},
    {"kernel", "kernel", " kernel "},
    {"gpu", "gpu", " device "},
    {"rule", "rule", " diagnosis "},
    {"severity", "severity", " diagnosis "},
    {"gpu_index", "gpu", " gpu "},
    {"gpu_name", "model", " gpu "},
};

// More than there can be pods on a node; whoever comes later is counted (rows_left_out_total).
constexpr size_t most_rows = 5000;
constexpr uint64_t leaves_after_ns = 600'000'000'000;

bool is_counter(Kind kind)
{
    return kind <= Kind::millionths;
}

// What it is told as.
std::string counted(Kind kind, uint64_t sum)
{
    switch (kind) {
    case Kind::nanoseconds:
        return fmt::format("{}.{:09}", sum / 1'000'000'000, sum % 1'000'000'000);
    case Kind::millionths:
        return fmt::format("{}.{:06}", sum / 1'000'000, sum % 1'000'000);
    default:
        return fmt::to_string(sum);
    }
}

// A label's value ends at a quote, a line at a newline, and one byte that is no UTF-8 costs node_exporter the file.
void append_label(std::string& to, std::string_view name, std::string_view value)
{
    to.append(to.empty() ? "" : ",").append(name).append("=\"");
    for (const char c : printable(value))
        to.append(c == '"' || c == '\\' ? 1 : 0, '\\').append(1, c);
    to += '"';
}

std::string text_of(const Cell& cell)
{
    if (const auto* text = std::get_if<std::string>(&cell))
        return *text;
    if (const auto* number = std::get_if<uint64_t>(&cell))
        return fmt::to_string(*number);
    return {};
}

uint64_t count_of(const Cell& cell)
{
    const auto* count = std::get_if<uint64_t>(&cell);
    return count ? *count : static_cast<uint64_t>(std::max(sort_value(cell), 0.0));
}

const Cell* cell_of(std::string_view key, std::span<const Column> columns, const Row& row)
{
    const auto column = std::ranges::find(columns, key, &Column::key);
    return column == columns.end() ? nullptr : &cell_at(row, static_cast<size_t>(column - columns.begin()));
}

// By kind of row: "pod" and "process" are any.
bool has(const Family& family, std::string_view rows)
{
    constexpr std::string_view others[] = {"total", "gpu", "diagnosis", "tenant", "idle", "unallocated"};
    return family.rows == rows || (family.rows == any && std::ranges::find(others, rows) == std::end(others));
}

// rows: "pod,device".
bool is_told_by(const Label& label, std::string_view rows)
{
    for (size_t at = 0; at <= rows.size();) {
        const size_t end = std::min(rows.find(',', at), rows.size());
        if (label.rows.find(fmt::format(" {} ", rows.substr(at, end - at))) != label.rows.npos)
            return true;
        at = end + 1;
    }
    return false;
}

void append_head(std::string& to, std::string_view name, bool counter, std::string_view help)
{
    fmt::format_to(std::back_inserter(to), "# HELP gpusnoop_{0} {1}\n# TYPE gpusnoop_{0} {2}\n", name, help,
                   counter ? "counter" : "gauge");
}

void append_value(std::string& to, std::string_view name, std::string_view labels, std::string_view more,
                  std::string_view value)
{
    to.append("gpusnoop_").append(name);
    if (!labels.empty() || !more.empty())
        to.append("{").append(labels).append(labels.empty() || more.empty() ? "" : ",").append(more).append("}");
    to.append(" ").append(value).append("\n");
}

} // namespace

MetricsPage::MetricsPage(std::string_view tool, std::string_view version) : tool_(tool), version_(version) {}

void MetricsPage::begin_rows(uint64_t now_ns, uint64_t wall_ns)
{
    now_ns_ = now_ns;
    wall_ns_ = wall_ns;
}

void MetricsPage::add(std::span<const Column> columns, const Row& row)
{
    const Cell* by = cell_of("by", columns, row);
    by = by ? by : cell_of("of", columns, row);
    const std::string rows = by ? text_of(*by) : std::string();
    std::string labels;
    for (const Label& label : labels_of_rows)
        if (const Cell* cell = is_told_by(label, rows) ? cell_of(label.key, columns, row) : nullptr)
            if (const std::string value = text_of(*cell); !value.empty())
                append_label(labels, label.name, value);
    if (rows_.size() >= most_rows && !rows_.contains(labels)) {
        left_out_++;
        return;
    }
    Labelled& labelled = rows_[labels];
    labelled.seen_ns = now_ns_;
    for (size_t i = 0; i < std::size(families); i++) {
        const Family& family = families[i];
        const Cell* cell = has(family, rows) ? cell_of(family.key, columns, row) : nullptr;
        if (!cell || std::holds_alternative<std::monostate>(*cell))
            continue;
        Series& series = labelled.series[i];
        switch (family.kind) {
        case Kind::counter:
        case Kind::nanoseconds:
        case Kind::millionths:
            series.sum += count_of(*cell);
            break;
        case Kind::so_far:
            series.sum = count_of(*cell);
            break;
        case Kind::gauge: // rows with the same labels are several, where a pod has begun anew
            series.value = sort_value(*cell) + (series.told ? series.value : 0);
            break;
        case Kind::ratio:
            series.value = sort_value(*cell) / 100;
            break;
        case Kind::one:
            series.value = 1 + (series.told ? series.value : 0);
            break;
        }
        series.told = true;
    }
}

void MetricsPage::end_report()
{
    for (auto& [labels, labelled] : rows_) {
        std::erase_if(labelled.series,
                      [](const auto& one) { return !is_counter(families[one.first].kind) && !one.second.told; });
        for (auto& [family, series] : labelled.series)
            series.told = false;
    }
    std::erase_if(rows_, [this](const auto& one) {
        return one.second.series.empty() || now_ns_ - one.second.seen_ns > leaves_after_ns;
    });
}

std::string MetricsPage::text() const
{
    std::string text;
    std::string_view last;
    for (size_t i = 0; i < std::size(families); i++) {
        const Family& family = families[i];
        if (family.name != std::exchange(last, family.name))
            append_head(text, family.name, is_counter(family.kind), family.help);
        for (const auto& [labels, labelled] : rows_) {
            const auto found = labelled.series.find(i);
            if (found == labelled.series.end())
                continue;
            const Series& series = found->second;
            append_value(text, family.name, labels, family.labels,
                         is_counter(family.kind) ? counted(family.kind, series.sum)
                                                 : fmt::format("{:.15g}", series.value));
        }
    }
    // Two tools may have files side by side, and none of their series may be the same.
    const std::string tool = fmt::format("tool=\"{}\"", tool_);
    append_head(text, "rows_left_out_total", true,
                "Rows that are in no series: there are more of them than series are kept.");
    append_value(text, "rows_left_out_total", tool, "", fmt::to_string(left_out_));
    append_head(text, "last_report_timestamp_seconds", false, "When the figures were told last.");
    append_value(text, "last_report_timestamp_seconds", tool, "", counted(Kind::nanoseconds, wall_ns_));
    append_head(text, "build_info", false, "Who tells them.");
    append_value(text, "build_info", tool, fmt::format("version=\"{}\"", version_), "1");
    return text;
}

} // namespace gpusnoop
