// SPDX-License-Identifier: Apache-2.0
// What a run of gpuspend was asked for, and the columns that show it.
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

// What rows tell apart.
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
    std::string prices, teams, state; // files
    std::string dcgm;                 // a URL of this machine, or a file
    std::string nvml_library;         // as in NvmlFigures
    MetricsOptions metrics;
};

struct Context {
    const Options& options;
    const Settings& settings;
    const Bill& bill;
    std::string_view currency;
    bool priced = false;                // some device has a price
    uint64_t since_ns = 0, wall_ns = 0; // when what the bill covers begins and ends, time of day
    // What this run took since the last report, of one CPU: from those that are traced, and for itself. nullopt: not
    // known.
    std::optional<double> probes_percent{}, own_percent{};
};

// The rows, what nobody was given, and the sum; below it the sentences and what is not known.
void print_bill(Output& output, const Context& context, const std::vector<std::string>& below);

// As FOCUS 1.3 names columns, a line per row and device.
void print_focus(Output& output, const Context& context);

// Throws UsageError where --columns or -s names no column, and Answer where --columns asks for their names.
void check_fields(const Options& options, const std::string& sort);

} // namespace gpusnoop::gpuspend
