// SPDX-License-Identifier: Apache-2.0
// Data of one interval, as shown on a live screen or in a batch table. The counting code fills it; the display code
// does not modify it.
#pragma once

#include "rows/table.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct TopColumn {
    Column column{};          // header, JSON key, unit, minimum width
    std::string_view about;   // description, for the help page and the column chooser
    bool shown = true;        // shown by default
    bool device_side = false; // values are from the GPU's own counters (NVML), so the header is marked with *
    std::string_view needs{}; // option without which the column is empty, such as "--latency"; empty: none
    bool stays = false; // identifies the row, so it never scrolls; if no column has `stays`, the first two never scroll
    bool adds = false;  // the column is included in sums
    bool by_severity = false; // rows are sorted by severity instead of the cell's text
    bool bad = false;         // all values except 0 are problems
    bool trend = false;       // shows a plot of the sort column's history instead of its own cells, which are empty
};

// Identity of a process, valid even if the pid is reused.
struct RowProcess {
    uint32_t pid = 0;
    uint64_t start_ns = 0; // CLOCK_BOOTTIME
};

struct TopRow {
    std::string id;                      // identifies the row in all snapshots
    std::string branch;                  // branch of the tree, such as a pod; empty: none
    Row cells;                           // one cell per column
    int severity = 0;                    // severity of the row's worst trouble; 0 if it has none
    std::optional<RowProcess> process{}; // set if the row is a single process
    std::string none{}; // name of the row if it collects everything without an owner, such as "(no pod)"; else empty
};

// A GPU's values from NVML. Unknown values are empty.
struct GpuState {
    unsigned index = 0;
    std::string name;
    std::optional<double> utilization; // percent
    std::optional<double> power_watts;
    std::optional<uint64_t> memory_used; // bytes
    std::optional<uint64_t> memory_total;
    // names of the processes that use the GPU, such as "trainer, solver +2"; empty if none is known
    std::string users{};
};

// A labelled value in the header, such as totals, probes, losses and overhead.
struct Fact {
    std::string label;
    std::string value;
    bool alarm = false;
    bool quiet = false; // unimportant, and so drawn dim
};

// A problem of one or more rows.
struct Trouble {
    int severity = 0; // 1: note, 2: warning, 3: alarm
    std::string mark; // severity as text, such as "!!"
    std::string who;  // name of the process
    std::string words;
    std::string why;               // the diagnosis rule that applied
    std::string next;              // command for further diagnosis
    std::string column{};          // key of the column that shows the problem; empty if there is none
    std::vector<std::string> rows; // ids of rows that have the problem
};

// Section of an open row's page: a title with a table or with lines of text, such as a histogram or stack.
struct DetailPart {
    std::string title;
    std::vector<Column> columns;
    std::vector<Row> rows;
    std::vector<std::string> lines;                // drawn below `rows` if the section has both
    std::vector<std::vector<std::string>> below{}; // stack that is drawn below each row; may be shorter than `rows`
};

struct Snapshot {
    uint64_t wall_ns = 0; // time of day at the end of the interval
    double seconds = 0;   // length of the interval
    std::string by;       // grouping of rows, such as "pid" or "pod"
    std::vector<GpuState> gpus;
    std::vector<Fact> facts;
    std::optional<std::vector<Trouble>> troubles; // worst first; nullopt if there is no diagnosis
    std::vector<TopColumn> columns;
    std::vector<TopRow> rows;
    std::vector<TopRow> totals;     // the sum line, if there is one
    std::vector<DetailPart> detail; // sections of the open row's page
    std::string detail_of;          // id of the open row in `detail`; empty if the sections are valid for any row
    std::string replayed{};         // current position in the recording, as text; empty if this is not a replay
    bool leaps = false; // in a replay: true if the position moved back, so that the history before it is invalid
};

// Filter and order of a snapshot's rows, on a live screen and in printed tables.
struct Arrangement {
    std::string sort{}; // key of the sort column; if there is no column with this key, rows keep the snapshot's order
    bool ascending = false;
    std::string then{};                // key of the secondary sort column, largest first
    std::string filter{};              // show only rows that contain this text, ignoring case
    bool tree = false;                 // group rows by branch; rows without a branch come last
    std::vector<std::string> frozen{}; // ids of rows that come first, in this order
};

// Filters and sorts rows; returns pointers into the snapshot. Rows whose sort cell is empty come last in either
// direction. Rows with equal values are ordered by id, so that they do not swap places between intervals. The row for
// everything without an owner (TopRow::none) is last.
std::vector<const TopRow*> arrange(const Snapshot& snapshot, const Arrangement& arrangement);

// Sums the columns whose member `adds` is true.
Row sum_of(const std::vector<TopColumn>& columns, const std::vector<const TopRow*>& rows);
// Recomputes the snapshot's sum line, if there is one, from the rows that pass the filter.
std::optional<TopRow> sum_line(const Snapshot& snapshot, const Arrangement& arrangement);

// True if a text cell of the row, or its branch, contains the text. Ignores the case of ASCII letters.
bool has_text(const TopRow& row, std::string_view text);
bool contains(std::string_view text, std::string_view part);

// True if this cell shows TopRow::none, because the row is for everything without an owner.
bool shows_none(const TopColumn& column, const TopRow& row);

std::optional<size_t> column_index(const std::vector<TopColumn>& columns, std::string_view key);

} // namespace gpusnoop
