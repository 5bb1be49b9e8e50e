// SPDX-License-Identifier: Apache-2.0
// Columns (fields) that the tables of several tools contain. A tool inserts these fields into its own list. The tool's
// Key must derive from CallKey, its Context from CallContext, and its Group must have the members that these fields
// read.
#pragma once

#include "rows/call_view.hpp"
#include "rows/report.hpp"

#include <algorithm>
#include <string>

namespace gpusnoop {

// Marks a column as computed from counted calls: if calls are sampled, its values are estimates.
constexpr Column of_calls(Column column)
{
    column.of_calls = true;
    return column;
}

inline Cell if_any(uint64_t n)
{
    return n ? Cell(n) : Cell();
}

inline Cell layer_name(uint8_t layer)
{
    return std::string(layer == LAYER_RUNTIME ? "runtime" : layer == LAYER_HIP ? "hip" : "driver");
}

inline Cell function_name(std::span<const Probe> probes, uint16_t number)
{
    return number && number <= probes.size() ? Cell(probes[number - 1].symbol) : Cell();
}

template<class Context, bool CallView::*dimension>
Shown where_viewed(const Context& c)
{
    return c.settings.view.*dimension ? Shown::both : Shown::no;
}

template<class Context>
Shown with_results(const Context& c)
{
    return c.results() ? Shown::both : Shown::no;
}

template<class Context>
Shown with_latency(const Context& c)
{
    return c.settings.latency ? Shown::both : Shown::no;
}

template<class Context>
Shown latency_in_json(const Context& c)
{
    return c.settings.latency ? Shown::json : Shown::no;
}

inline constexpr std::string_view about_stream =
    "Stream handle; 0x0 is the default stream, 0x1 the legacy default stream, 0x2 the per-thread default stream.";
inline constexpr std::string_view about_layer =
    "API layer of the calls: `driver`, `runtime` or `hip` (HIP has a single layer); only with `--api both`.";
inline constexpr std::string_view about_vendor =
    "Vendor of the GPU, derived from the API: `nvidia` for CUDA, `amd` for HIP. A row never mixes the two.";
inline constexpr std::string_view about_function = "The function that was called; in tables with `--by api`.";
inline constexpr std::string_view about_result = "Result of the call, as name and number; with `-x`.";

template<class K, class G, class C>
inline constexpr Field<C, K, G> stream_field = {{"STREAM", "stream", Unit::hex, 14},
                                                where_viewed<C, &CallView::stream>,
                                                [](const K& k, const G&, const C&) { return Cell(k.stream); },
                                                about_stream};

template<class K, class G, class C>
inline constexpr Field<C, K, G> device_field = {
    {"DEVICE", "device", Unit::count, 6},
    where_viewed<C, &CallView::device>,
    [](const K& k, const G&, const C&) { return k.device == DEVICE_UNKNOWN ? Cell() : Cell(uint64_t{k.device}); },
    "Device of the calling thread, numbered as in its process (CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES applies). "
    "Unknown until the thread changes its device or context while traced."};

template<class Context>
Shown where_sampled(const Context& c)
{
    return c.settings.max_overhead ? Shown::json : Shown::no;
}

template<class K, class G, class C>
inline constexpr Field<C, K, G> sampled_field = {
    {"", "sampled_percent", Unit::percent},
    where_sampled<C>,
    [](const K&, const G& g, const C& c) { return sampled_cell(g.who, c.processes); },
    "With `--max-overhead`: the share of CPU time during which calls were counted, and the error of the estimates."};

template<class K, class G, class C>
inline constexpr Field<C, K, G> sampled_error_field = {
    {"", "sampled_error_percent", Unit::percent}, where_sampled<C>, [](const K&, const G& g, const C& c) {
        return sampled_error_cell(g.who, c.processes);
    }};

template<class K, class G, class C>
inline constexpr Field<C, K, G> layer_field = {{"LAYER", "layer", Unit::text, 7},
                                               where_viewed<C, &CallView::layer>,
                                               [](const K& k, const G&, const C&) { return layer_name(k.layer); },
                                               about_layer};

inline Cell vendor_name(Vendor vendor)
{
    return std::string(vendor == Vendor::amd ? "amd" : "nvidia");
}

template<class K, class G, class C>
inline constexpr Field<C, K, G> vendor_field = {{"VENDOR", "vendor", Unit::text, 7},
                                                json_only<C>,
                                                [](const K& k, const G&, const C&) { return vendor_name(k.vendor); },
                                                about_vendor};

// For rows that are not grouped by API: "nvidia", "amd", or "nvidia,amd" if both APIs were called; empty if no call was
// seen.
inline Cell vendors_cell(const WhoSeen& seen)
{
    std::string all;
    for (const Vendor vendor : {Vendor::nvidia, Vendor::amd})
        if (seen.vendors >> static_cast<unsigned>(vendor) & 1)
            all += (all.empty() ? "" : ",") + std::get<std::string>(vendor_name(vendor));
    return all.empty() ? Cell() : Cell(all);
}

template<class K, class G, class C>
inline constexpr Field<C, K, G> vendors_field = {
    {"VENDOR", "vendor", Unit::text, 7},
    json_only<C>,
    [](const K&, const G& g, const C&) { return vendors_cell(g.who); },
    "`nvidia`, `amd` or `nvidia,amd`: the row contains CUDA calls, HIP calls or both."};

template<class K, class G, class C>
inline constexpr Field<C, K, G> function_field = {
    {"FUNCTION", "function", Unit::text, 28},
    where_viewed<C, &CallView::function>,
    [](const K& k, const G&, const C& c) { return function_name(c.probes, k.function); },
    about_function};

template<class K, class G, class C>
inline constexpr Field<C, K, G> result_field = {
    {"RESULT", "result", Unit::text, 28},
    where_viewed<C, &CallView::result>,
    [](const K& k, const G&, const C&) { return Cell(result_name(library_of(k.layer), k.result)); },
    about_result};

template<class C>
Shown result_in_json(const C& c)
{
    return c.settings.view.result ? Shown::json : Shown::no;
}

template<class K, class G, class C>
inline constexpr Field<C, K, G> result_code_field = {
    {"", "result_code", Unit::count}, result_in_json<C>, [](const K& k, const G&, const C&) {
        return Cell(int64_t{k.result});
    }};

template<class K, class G, class C>
inline constexpr Field<C, K, G> errors_field = {{"ERRORS", "errors", Unit::count, 7},
                                                with_results<C>,
                                                count_of<&G::errors>,
                                                "Calls that returned an error; with `-l` or `-x`."};

// Percentile of a group's call durations (G::duration), capped at the longest duration (G::max_ns).
template<class G>
Cell duration_cell(const G& group, double share)
{
    // percentile() returns the middle of a bucket, which may exceed the largest value in it.
    return group.duration.total() ? Cell(std::min(group.duration.percentile(share), group.max_ns)) : Cell();
}

template<int percent>
constexpr auto duration_percentile =
    [](const auto&, const auto& g, const auto&) { return duration_cell(g, percent / 100.0); };

// Host latency of calls (-l).
template<class K, class G, class C>
inline constexpr Field<C, K, G> latency_fields[] = {
    {{"LAT_p50(us)", "latency_p50_ns", Unit::ns_as_us, 11},
     with_latency<C>,
     duration_percentile<50>,
     "Median, percentiles and maximum of the time that the call takes on the host, including failed calls; with `-l`. "
     "Percentiles are accurate to within about 6%."},
    {{"", "latency_p95_ns", Unit::ns_as_us}, latency_in_json<C>, duration_percentile<95>},
    {{"p99(us)", "latency_p99_ns", Unit::ns_as_us, 8}, with_latency<C>, duration_percentile<99>},
    {{"MAX(us)", "latency_max_ns", Unit::ns_as_us, 8}, with_latency<C>, count_of<&G::max_ns>},
    {{"", "latency_total_ns", Unit::count},
     latency_in_json<C>,
     count_of<&G::total_ns>,
     "Sum of the times of all calls."},
};

} // namespace gpusnoop
