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
    std::optional<std::string> sort_by; // argument of -s
    bool ascending = false;
    std::string filter;
    bool no_config = false;  // do not load or save preferences
    Preferences preferences; // screen settings of earlier runs
    NameOptions names;
    bool tree = false;
    uint32_t live_entries = 1'000'000;
    std::string nvml_library; // empty: the usual library; "off": none
    MetricsOptions metrics;

    // Sets the grouping of rows, such as "pid" or "kernel,pod". Throws UsageError.
    void choose_rows(std::string_view dimensions);
    Arrangement arrangement() const;
};

// Values that the attached BPF programs provide. All other values are unknown.
struct Known {
    bool launches = true;
    bool copies = true;
    bool graphs = true; // the contents of launched graphs
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
    bool ioctls = false; // calls into a GPU's kernel driver are traced
    bool xid = false;    // GPU errors (Xids) are traced

    const WhoView& who() const { return settings.rows.who; }
};

// The JSON key of the column with this name (header or key). Throws UsageError if there is none.
std::string column_key(std::string_view name);
// True if this column is sorted in ascending order by default, such as names from A to Z.
bool is_ascending(std::string_view key);

// The columns of all views, with their descriptions.
std::vector<Column> columns_on_offer();

// The columns of this view. `shown` is set for the columns to display: the default columns, as changed by --columns.
std::vector<TopColumn> columns(const Context& context);

// The columns of all views, for rows read from a recording. `shown` is set for the default columns.
std::vector<TopColumn> columns_of_any_view(bool screen);

// Returns an id of the row that stays the same in all intervals.
std::string row_id(const Key& key);

std::vector<TopRow> rows(const std::map<Key, Group>& groups, const Context& context);

// Sums the columns in which `adds` is set.
TopRow total(const std::vector<TopRow>& rows, const std::vector<TopColumn>& columns);

} // namespace gpusnoop::cudatop
