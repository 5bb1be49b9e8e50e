// SPDX-License-Identifier: Apache-2.0
// The columns of cudatop: one table for the screen, for text and for JSON.
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

// Rows are sorted by trouble, and those of equal trouble by this.
inline constexpr auto usual_order = "launches_per_second";

struct Settings : CallSettings {
    View rows; // what they stand for
    bool batch = false;
    bool why = false;                   // what is wrong, in words, instead of a table
    bool screen = false;                // there is one, with more room than a table
    bool cheap = false;                 // no return probes: no waits, no memory, no results
    std::optional<std::string> sort_by; // as it was asked for
    bool ascending = false;             // sorted from the smallest on
    std::string filter;
    bool no_config = false;  // what keys chose in earlier runs is not asked for, nor kept
    Preferences preferences; // what they chose, for the screen
    NameOptions names;
    bool tree = false;
    uint32_t live_entries = 1'000'000;
    std::string nvml_library; // empty: the usual one; "off"
    MetricsOptions metrics;

    // "pid", "kernel,pod", ...; throws UsageError.
    void choose_rows(std::string_view what);
    Arrangement arrangement() const;
};

// What the programs can tell that are there; what depends on others is n/a.
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
    bool ioctls = false; // some driver's calls are
    bool xid = false;    // its errors are

    const WhoView& who() const { return settings.rows.who; }
};

// The JSON key of the column with this name (header or key). Throws UsageError where there is none.
std::string column_key(std::string_view name);
// Whether rows that are sorted by it begin with the smallest: names from A on.
bool is_ascending(std::string_view key);

// Those of any view, with their sentences.
std::vector<Column> columns_on_offer();

// The columns that there are in this view, those shown at first marked.
std::vector<TopColumn> columns(const Context& context);

// All that some view has, those shown at first marked: of rows that are known by their JSON alone.
std::vector<TopColumn> columns_of_any_view(bool screen);

// Of a row: the same in each interval.
std::string row_id(const Key& key);

// A row for each group, with a cell for each column.
std::vector<TopRow> rows(const std::map<Key, Group>& groups, const Context& context);

// The sum of the rows, of what adds up.
TopRow total(const std::vector<TopRow>& rows, const std::vector<TopColumn>& columns);

} // namespace gpusnoop::cudatop
