// SPDX-License-Identifier: Apache-2.0
// gpuspend's settings and columns.
#pragma once

#include "output/metrics.hpp"
#include "rows/call_view.hpp"
#include "rows/field.hpp"
#include "rows/output.hpp"
#include "tools/gpuspend/bill.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop::gpuspend {

// Keys by which rows are grouped (--by).
struct View {
    bool pid = false, comm = false, user = false, container = false, pod = false, pod_namespace = false, cgroup = false,
         team = false, device = false;

    static constexpr std::string_view names = "device, team, user, pid, comm, container, pod, namespace, cgroup";
    void parse(std::string_view list); // throws UsageError
    bool of_processes() const { return pid || comm || user; }
};

struct Settings : CallSettings {
    View rows;
    SplitBy split = SplitBy::launches;
    bool cheap = false;
    bool csv = false;
    std::string split_by = "launches";
    std::string prices, teams, state; // paths of the files
    std::string dcgm;                 // a loopback URL, or a path
    std::string nvml_library;         // path of the NVML library, "off", or empty for the default
    MetricsOptions metrics;
};

struct Context {
    const Options& options;
    const Settings& settings;
    const Bill& bill;
    std::string_view currency;
    bool priced = false;                // at least one device has a price
    uint64_t since_ns = 0, wall_ns = 0; // begin and end of the billed period, by the wall clock
    // CPU time since the last report, in percent of one CPU, used by the probes in traced processes, and by gpuspend
    // itself. nullopt if not known.
    std::optional<double> probes_percent{}, own_percent{};
};

// Prints rows for tenants, idle time, unallocated time and the total, and then the notes in `below`.
void print_bill(Output& output, const Context& context, const std::vector<std::string>& below);

// Prints one line per row, device and part (used, idle or unallocated time), with the columns of FOCUS 1.3.
void print_focus(Output& output, const Context& context);

// Throws UsageError if --columns or -s names an unknown column. For --columns help, throws Answer with the list of
// columns.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::gpuspend
