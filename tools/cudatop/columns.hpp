// SPDX-License-Identifier: Apache-2.0
// The columns of cudatop and the settings of a run. Screen, text and JSON share one table of columns.
#pragma once

#include "gpu/nvml_figures.hpp"
#include "names/kernel_text.hpp"
#include "output/metrics.hpp"
#include "rows/process_gpus.hpp"
#include "rows/report.hpp"
#include "screen/preferences.hpp"
#include "screen/snapshot.hpp"
#include "tools/cudatop/diagnosis.hpp"
#include "tools/cudatop/groups.hpp"
#include "tools/cudatop/held.hpp"
#include "who/host_files.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpusnoop::cudatop {

// Rows are sorted by trouble, then by this column.
inline constexpr auto usual_order = "launches_per_second";

struct Settings : CallSettings {
    View rows;
    bool batch = false;
    bool why = false;                   // print verdicts instead of a table
    bool screen = false;                // output goes to a screen
    bool cheap = false;                 // no return probes, so no waits, memory or results
    std::optional<std::string> sort_by; // the argument of -s
    bool ascending = false;
    std::string filter;
    bool no_config = false;  // do not load or save preferences
    Preferences preferences; // screen settings of earlier runs
    NameOptions names;
    bool tree = false;
    uint32_t live_entries = 1'000'000;
    std::string nvml_library; // empty: the usual one; "off"
    MetricsOptions metrics;

    // "pid", "kernel,pod", ...; throws UsageError.
    void choose_rows(std::string_view dimensions);
    Arrangement arrangement() const;
};

// Figures that are available with the attached BPF programs. The others are n/a.
struct Known {
    bool launches = true;
    bool copies = true;
    bool graphs = true; // kernels in them
    bool memory = true;
    bool waits = true;
    bool results = true;
};

struct Context : CallContext<Settings> {
    const Users& users;
    const NvmlFigures& figures;
    const ProcessGpus& gpus;
    const Held& held;
    const std::map<uint32_t, XidsOf>& xids; // by pid
    const Diagnosis& diagnosis;
    Known known;
    bool ioctls = false; // calls of some kernel driver are traced
    bool xid = false;    // its GPU errors are traced

    const WhoView& who() const { return settings.rows.who; }
};

// The JSON key of the column with this name (header or key). Throws UsageError if there is none.
std::string column_key(std::string_view name);
// Whether rows sorted by this column are sorted in ascending order by default: names from A to Z.
bool is_ascending(std::string_view key);

// The columns of all views, with their descriptions.
std::vector<Column> columns_on_offer();

// The columns of this view; those shown by default are marked.
std::vector<TopColumn> columns(const Context& context);

// The columns of all views, for rows read from a recording; those shown by default are marked.
std::vector<TopColumn> columns_of_any_view(bool screen);

// Stays the same from interval to interval.
std::string row_id(const Key& key);

std::vector<TopRow> rows(const std::map<Key, Group>& groups, const Context& context);

// The sums of the columns that add up.
TopRow total(const std::vector<TopRow>& rows, const std::vector<TopColumn>& columns);

} // namespace gpusnoop::cudatop
