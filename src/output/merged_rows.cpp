// SPDX-License-Identifier: Apache-2.0
#include "output/merged_rows.hpp"

#include "base/error.hpp"
#include "base/options.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace gpusnoop {
namespace {

using Of = RowKey::Of;

const RowKey row_keys[] = {
    {"pid", {"PID", "COMM", "NSPID"}, {"pid", "process_start_ns"}, Of::process},
    {"comm", {"COMM"}, {"comm"}, Of::process},
    {"thread", {"TID", "PID", "COMM"}, {"pid", "process_start_ns", "tid"}, Of::process},
    {"container", {"CONTAINER"}, {"container_id", "container"}, Of::owner},
    {"pod", {"POD"}, {"namespace", "pod", "pod_uid"}, Of::owner},
    {"namespace", {"NAMESPACE"}, {"namespace"}, Of::owner},
    {"cgroup", {"CGROUP"}, {"cgroup"}, Of::owner},
    {"kernel", {"KERNEL"}, {"kernel", "handle"}},
    {"stream", {"STREAM", "PID", "COMM"}, {"pid", "process_start_ns", "stream"}},
    {"device", {"DEVICE"}, {"device"}},
    {"api", {"FUNCTION"}, {"function"}},
    {"layer", {"LAYER"}, {"layer"}},
    {"kind", {"KIND"}, {"kind"}},
    {"memory", {"FROM", "TO"}, {"source", "destination"}},
    {"form", {"FORM"}, {"form"}},
    {"wait", {"WAIT"}, {"wait"}},
    {"graph", {"EXEC", "NODES", "PID", "COMM"}, {"pid", "process_start_ns", "exec_number"}},
    {"operation", {"CALL"}, {"operation"}},
    {"size", {"SIZE"}, {"size_bytes"}},
    {"command", {"COMMAND"}, {"command", "request", "subject"}},
    {"class", {"CLASS"}, {"class"}},
    {"result", {"RESULT"}, {"result"}},
};

enum class Add : unsigned char {
    sum,
    level, // sum of the rows of the latest report, not of all reports
    last,  // value in the latest report; empty if several rows of that report are merged
    most,
    least,
    same, // the value that all rows have in common; empty if rows differ
};

struct Rule {
    std::string_view tool; // empty: all tools
    Add add;
    std::vector<std::string_view> keys;
};

const Rule rules[] = {
    {"",
     Add::same,
     {"pid", "process_start_ns", "ns_pid", "tid", "uid", "device", "exec_number", "size_bytes", "result_code"}},
    {"", Add::least, {"sampled_percent"}},
    {"", Add::sum, {"errors", "captured", "calls", "latency_total_ns"}},
    {"", Add::most, {"latency_max_ns", "duration_max_ns"}},
    {"cudalaunch",
     Add::sum,
     {"launches", "graph_launches", "graph_kernels", "graph_launches_unknown", "host_functions"}},
    {"cudamemcpy", Add::sum, {"copies", "bytes", "failed_bytes", "unsized", "synchronous", "small"}},
    {"cudasync", Add::sum, {"not_ready", "ended", "ended_ns", "total_ns"}},
    {"cudasync", Add::level, {"waiting", "waiting_earlier"}},
    {"gpualloc",
     Add::sum,
     {"allocs", "frees", "allocated_bytes", "freed_bytes", "failures", "out_of_memory", "released", "released_bytes",
      "unknown_frees", "untracked", "unsized", "trims"}},
    {"gpualloc",
     Add::level,
     {"live_bytes", "live_allocations", "device_bytes", "pool_bytes", "vmm_bytes", "array_bytes", "managed_bytes",
      "pinned_bytes", "registered_bytes", "reserved_bytes", "mapped_bytes", "external_bytes", "graph_bytes", "imported",
      "pools", "nvml_bytes", "before_attach_and_context_bytes"}},
    {"gpualloc", Add::last, {"peak_bytes", "failed_bytes"}},
    {"gpualloc", Add::most, {"live_is_lower_bound", "approximate"}},
    {"cudagraph",
     Add::sum,
     {"captures", "failed_captures", "instantiates", "launches", "kernels_launched", "unknown_launches",
      "direct_launches", "capture_ns", "instantiate_total_ns", "updates", "failed_updates", "uploads", "parameter_sets",
      "destroyed"}},
    {"cudagraph", Add::level, {"live_graphs", "live_execs"}},
    {"cudagraph",
     Add::last,
     {"nodes", "kernels", "copies", "memsets", "host_functions", "other_nodes", "instantiate_ns", "age_ns"}},
    {"nvioctl", Add::sum, {"unknown", "bytes", "virtual_bytes", "total_ns"}},
    {"nvioctl", Add::level, {"pending"}},
};

// Returns the operation that merges values with this key; nullopt if they cannot be merged.
std::optional<Add> rule_of(std::string_view tool, std::string_view key, const Record::Value& value)
{
    for (const Rule& rule : rules)
        if ((rule.tool.empty() || rule.tool == tool) && std::ranges::find(rule.keys, key) != rule.keys.end())
            return rule.add;
    const bool is_text = std::holds_alternative<std::string>(value) || std::holds_alternative<Record::Texts>(value);
    return is_text ? std::optional(Add::same) : std::nullopt;
}

std::string text_of(const Record::Value& value)
{
    if (const auto* text = std::get_if<std::string>(&value))
        return *text;
    const auto* number = std::get_if<double>(&value);
    return number ? fmt::format("{:.0f}", *number) : "";
}

bool is_one_process(const Record& row)
{
    return row.number("pid") || row.number("processes").value_or(0) == 1;
}

} // namespace

std::vector<const RowKey*> row_keys_named(std::string_view list)
{
    std::vector<const RowKey*> all;
    for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + 1) {
        end = list.find(',', at);
        const std::string_view name = list.substr(at, end - at);
        const auto* const found = std::ranges::find(row_keys, name, &RowKey::name);
        if (found == std::end(row_keys))
            throw UsageError(fmt::format("--replay cannot group rows by {}", printable(name)));
        all.push_back(found);
    }
    return all;
}

namespace {

// Compares the JSON key, because a column of values may have the same header as a key.
bool shows(const Column& column, const RowKey& key)
{
    return column.key.empty() || std::ranges::find(key.keys, column.key) != key.keys.end();
}

} // namespace

const RowKey* row_key_of(const Column& column)
{
    for (const RowKey& key : row_keys)
        if (std::ranges::find(key.headers, column.header) != key.headers.end() && shows(column, key))
            return &key;
    return nullptr;
}

std::vector<const RowKey*> row_keys_shown(std::span<const Column> columns)
{
    std::vector<const RowKey*> all;
    for (const RowKey& key : row_keys)
        if (std::ranges::any_of(columns, [&](const Column& column) {
                return column.header == key.headers.front() && shows(column, key);
            }))
            all.push_back(&key);
    return all;
}

std::string MergedRows::id_of(const Record& row) const
{
    std::string id;
    for (const RowKey* key : keys_) {
        bool has_value = false;
        for (const std::string_view name : key->keys) {
            const Record::Value* value = row.value(name);
            has_value |= value != nullptr;
            // The handle is used only if the kernel has no name, because processes have different handles for the same
            // kernel.
            if (value && !(name == "handle" && row.value("kernel")))
                id += fmt::format("{}={}\n", name, text_of(*value));
        }
        const bool is_known = has_value || std::ranges::find(recorded_, key) != recorded_.end() ||
                              (key->of == Of::owner && is_one_process(row));
        if (!is_known)
            throw Error(fmt::format("the recording cannot be grouped by {}: some of its rows cover several {}",
                                    key->name, key->of == Of::call ? "calls" : "processes"),
                        fmt::format("record it with --by {}, or with --by pid and further keys", key->name));
    }
    if (const auto* frames = row.texts("frames"); with_frames_ && frames)
        for (const std::string& frame : *frames)
            id += frame + '\n';
    return id;
}

void MergedRows::add(const Record& row, size_t moment)
{
    last_ = moment;
    const auto [place, is_new] = places_.try_emplace(id_of(row), groups_.size());
    if (is_new)
        groups_.emplace_back();
    Group& group = groups_[place->second];
    for (auto& [key, value] : group.values)
        if (!row.value(key))
            group.unknown.insert(key);
    for (const auto& [key, value] : row.all()) {
        if (group.rows && !group.values.contains(key))
            group.unknown.insert(key);
        combine(group, key, value, moment);
    }
    group.rows++;
}

void MergedRows::combine(Group& group, const std::string& key, const Record::Value& value, size_t moment)
{
    const auto [place, is_first] = group.values.try_emplace(key, Value{value, moment});
    if (is_first)
        return;
    Value& known = place->second;
    const bool is_later = moment != known.moment;
    known.moment = moment;
    const auto rule = rule_of(tool_, key, value);
    auto* sum = std::get_if<double>(&known.value);
    const auto* more = std::get_if<double>(&value);
    if (rule == Add::same) {
        known.known &= known.value == value;
    } else if (rule == Add::last || (rule == Add::level && is_later)) {
        known.known = is_later;
        known.value = value;
    } else if (!rule || !sum || !more) {
        known.known = false;
        unmergeable_.insert(key);
    } else if (rule == Add::most) {
        *sum = std::max(*sum, *more);
    } else if (rule == Add::least) {
        *sum = std::min(*sum, *more);
    } else {
        *sum += *more;
    }
}

std::vector<Record> MergedRows::rows() const
{
    std::vector<Record> all;
    for (const Group& group : groups_) {
        std::vector<std::pair<std::string, Record::Value>> values;
        for (const auto& [key, value] : group.values) {
            const auto rule = rule_of(tool_, key, value.value);
            // A count that is missing in a row is 0 in that row. If any other value is missing in a row, the merged
            // value is unknown.
            const bool in_all = !group.unknown.contains(key) || rule == Add::sum || rule == Add::level ||
                                rule == Add::most || rule == Add::least;
            const bool is_old = (rule == Add::level || rule == Add::last) && value.moment != last_;
            if (value.known && in_all && !is_old)
                values.emplace_back(key, value.value);
        }
        all.emplace_back(std::move(values));
    }
    return all;
}

} // namespace gpusnoop
