// SPDX-License-Identifier: Apache-2.0
#include "output/metrics_page.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace gpusnoop {
namespace {

// Computation of a metric from its column. Counters come first, as is_counter() expects.
enum class Kind : uint8_t {
    counter,     // sum of the values in all rows so far
    nanoseconds, // like `counter`, but the column is in nanoseconds and the metric in seconds
    total,       // the value in the latest row, which is already a total since the start
    millionths,  // like `counter`, but the column is in millionths of a currency unit and the metric in whole units
    gauge,
    ratio, // a gauge between 0 and 1, computed from a percentage
    one,   // a gauge that counts the rows with the same labels
};

// Value of Family::rows for metrics that come from rows grouped by any key of --by, such as "pod".
constexpr std::string_view any = "*";

// A metric family. Entries with the same name are adjacent, and have different `labels`.
struct Family {
    std::string_view name;
    Kind kind;
    std::string_view rows; // kind of rows that provide the metric
    std::string_view key;  // JSON key of the column
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
    {"copies_total", Kind::counter, any, "copies", "Memory copies, memsets and prefetches."},
    {"copy_bytes_total", Kind::counter, any, "h2d_bytes", "Bytes copied.", R"(direction="h2d")"},
    {"copy_bytes_total", Kind::counter, any, "d2h_bytes", "", R"(direction="d2h")"},
    {"copy_bytes_total", Kind::counter, any, "d2d_bytes", "", R"(direction="d2d")"},
    {"sync_waits_total", Kind::counter, any, "waits", "Calls that waited for the device."},
    {"sync_wait_seconds_total", Kind::nanoseconds, any, "blocked_ns",
     "Time that threads spent in calls that wait for the device, summed over threads."},
    {"allocations_total", Kind::counter, any, "allocs", "Allocations of device memory."},
    {"frees_total", Kind::counter, any, "frees", "Frees of device memory."},
    {"allocation_failures_total", Kind::counter, any, "allocation_failures", "Allocations and frees that failed."},
    {"call_errors_total", Kind::counter, any, "errors",
     "Calls that returned an error, among those whose result is traced."},
    {"driver_calls_total", Kind::counter, any, "ioctls", "Calls into the kernel's GPU driver."},
    {"driver_call_seconds_total", Kind::nanoseconds, any, "ioctl_ns", "Time spent in calls into the GPU driver."},
    {"live_bytes", Kind::gauge, any, "live_bytes",
     "Device memory allocated since tracing began and not freed; processes that started earlier may hold more."},
    {"memory_bytes", Kind::gauge, any, "memory_bytes",
     "Device memory held: as reported by the driver (NVML), otherwise the sum of observed allocations."},
    {"diagnosis", Kind::one, "diagnosis", "rule", "Processes (or threads) with a problem found by this rule."},
    {"gpu_utilization_ratio", Kind::ratio, "gpu", "gpu_percent", "GPU utilization, as the driver reports it."},
    {"gpu_memory_used_bytes", Kind::gauge, "gpu", "gpu_used_bytes", "GPU memory in use, from NVML."},
    {"gpu_memory_total_bytes", Kind::gauge, "gpu", "gpu_total_bytes", "GPU memory installed, from NVML."},
    {"gpu_power_watts", Kind::gauge, "gpu", "gpu_watts", "GPU power draw, from NVML."},
    {"gpu_allocated_seconds_total", Kind::nanoseconds, "tenant", "allocated_ns",
     "GPU time allocated to a tenant; one of N replicas of a shared GPU counts 1/N."},
    {"gpu_resident_seconds_total", Kind::nanoseconds, "tenant", "resident_ns",
     "Time that a tenant had a context or memory on GPUs, summed over GPUs."},
    {"gpu_driving_seconds_total", Kind::nanoseconds, "tenant", "driving_ns",
     "Time in which a tenant launched work on GPUs, summed over GPUs; a second with any launch counts in full."},
    {"gpu_used_seconds_total", Kind::nanoseconds, "tenant", "used_ns",
     "GPU time attributed to the tenants that used it; used, idle and unallocated time add up to all GPU time."},
    {"gpu_idle_seconds_total", Kind::nanoseconds, "tenant", "idle_ns", "GPU time that a tenant held but did not use."},
    {"gpu_unallocated_seconds_total", Kind::nanoseconds, "unallocated", "device_time_ns",
     "GPU time that no tenant held, including the shares of free replicas."},
    {"gpu_used_cost_total", Kind::millionths, "tenant", "cost_micros", "Cost of the used time, from --prices."},
    {"gpu_idle_cost_total", Kind::millionths, "tenant", "idle_cost_micros", "Cost of the idle time."},
    {"gpu_unallocated_cost_total", Kind::millionths, "unallocated", "cost_micros", "Cost of the unallocated time."},
    {"xids_total", Kind::total, any, "xids",
     "GPU errors (Xids) that the driver reported for processes with these labels."},
    {"traced_processes", Kind::gauge, "total", "traced_processes", "Processes that are traced."},
    {"lost_events_total", Kind::total, "total", "lost",
     "Events lost since tracing began; the other metrics do not include them."},
    {"probes_cpu_ratio", Kind::ratio, "total", "probes_cpu_percent",
     "CPU time that the probes take from traced processes, as a share of one CPU."},
    {"own_cpu_ratio", Kind::ratio, "total", "own_cpu_percent", "CPU time of the tracer itself, as a share of one CPU."},
};

// A label of metric series. Only rows that are grouped by the label's column have the label. In other rows, the column
// may be empty at times, and each change of a label's value would start a new series.
struct Label {
    std::string_view key, name; // JSON key of the column, name of the label
    std::string_view rows;      // kinds of rows that have the label, with a blank before and after each kind
};
constexpr Label labels_of_rows[] = {
    {"namespace", "namespace", " namespace pod container pid thread diagnosis tenant "},
    {"pod", "pod", " pod container pid thread diagnosis tenant "},
    {"container", "container", " container pid thread diagnosis tenant "},
    {"uid", "uid", " container "}, // only for rootless containers: the user who chose the container's name
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

// Exceeds the number of pods on any node. Rows beyond this limit are only counted (rows_left_out_total).
constexpr size_t max_rows = 5000;
constexpr uint64_t expiry_ns = 600'000'000'000;

bool is_counter(Kind kind)
{
    return kind <= Kind::millionths;
}

// A counter's value as text, in the unit of the metric.
std::string counter_text(Kind kind, uint64_t sum)
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

// Escapes quotes and backslashes. printable() replaces newlines and invalid UTF-8, because node_exporter would reject a
// whole file that contains them.
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

// True if rows of this kind provide the metric. `any` matches every kind that is not in the list below, such as "pod".
bool has(const Family& family, std::string_view rows)
{
    constexpr std::string_view others[] = {"total", "gpu", "diagnosis", "tenant", "idle", "unallocated"};
    return family.rows == rows || (family.rows == any && std::ranges::find(others, rows) == std::end(others));
}

// rows: kinds of rows, separated by commas, such as "pod,device".
bool applies_to(const Label& label, std::string_view rows)
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
        if (const Cell* cell = applies_to(label, rows) ? cell_of(label.key, columns, row) : nullptr)
            if (const std::string value = text_of(*cell); !value.empty())
                append_label(labels, label.name, value);
    if (rows_.size() >= max_rows && !rows_.contains(labels)) {
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
        case Kind::total:
            series.sum = count_of(*cell);
            break;
        case Kind::gauge: // a sum, because several rows have the same labels after a pod has restarted
            series.value = sort_value(*cell) + (series.in_report ? series.value : 0);
            break;
        case Kind::ratio:
            series.value = sort_value(*cell) / 100;
            break;
        case Kind::one:
            series.value = 1 + (series.in_report ? series.value : 0);
            break;
        }
        series.in_report = true;
    }
}

void MetricsPage::end_report()
{
    for (auto& [labels, labelled] : rows_) {
        std::erase_if(labelled.series,
                      [](const auto& one) { return !is_counter(families[one.first].kind) && !one.second.in_report; });
        for (auto& [family, series] : labelled.series)
            series.in_report = false;
    }
    std::erase_if(rows_, [this](const auto& one) {
        return one.second.series.empty() || now_ns_ - one.second.seen_ns > expiry_ns;
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
                         is_counter(family.kind) ? counter_text(family.kind, series.sum)
                                                 : fmt::format("{:.15g}", series.value));
        }
    }
    // The label `tool` keeps the series distinct if several tools write files.
    const std::string tool = fmt::format("tool=\"{}\"", tool_);
    append_head(text, "rows_left_out_total", true,
                "Rows left out of the metrics because the limit on their number was reached.");
    append_value(text, "rows_left_out_total", tool, "", fmt::to_string(left_out_));
    append_head(text, "last_report_timestamp_seconds", false, "Time of the last report.");
    append_value(text, "last_report_timestamp_seconds", tool, "", counter_text(Kind::nanoseconds, wall_ns_));
    append_head(text, "build_info", false, "Tool and version.");
    append_value(text, "build_info", tool, fmt::format("version=\"{}\"", version_), "1");
    return text;
}

} // namespace gpusnoop
