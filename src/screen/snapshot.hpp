// SPDX-License-Identifier: Apache-2.0
// Data of one interval for a live screen or a batch table. Plain data: the counting code fills it, and the display code
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
    std::string_view about;   // description for the help and the column chooser
    bool shown = true;        // by default
    bool device_side = false; // a figure of the GPU's own counters (NVML), marked with *
    std::string_view needs{}; // option that is required to fill it ("--latency"); empty: none
    bool stays = false;       // identifies the row, so never scrolls. If none is marked, the first two columns stay
    bool adds = false;        // included in sums
    bool by_severity = false; // sorts rows by severity instead of the cell's text
    bool bad = false;         // any value other than 0 is a problem
    bool trend = false;       // plots the history of the sort column; its cells are empty
};

// Identifies a process even if its pid is reused.
struct RowProcess {
    uint32_t pid = 0;
    uint64_t start_ns = 0; // CLOCK_BOOTTIME
};

struct TopRow {
    std::string id;                      // the same in all snapshots
    std::string branch;                  // parent in the tree, such as the pod; empty: none
    Row cells;                           // one per column
    int severity = 0;                    // of its worst trouble; 0: none
    std::optional<RowProcess> process{}; // set if the row is a single process
    std::string none{};                  // name of the row for everything without an owner, "(no pod)"; sorted last
};

// GPU figures from NVML; empty if unknown.
struct GpuState {
    unsigned index = 0;
    std::string name;
    std::optional<double> utilization; // percent
    std::optional<double> power_watts;
    std::optional<uint64_t> memory_used; // bytes
    std::optional<uint64_t> memory_total;
    std::string users{}; // processes: "trainer, solver +2"; empty: none, or unknown
};

// A labelled value in the header: totals, probes, losses, overhead.
struct Fact {
    std::string label;
    std::string value;
    bool alarm = false;
    bool quiet = false; // unimportant, so drawn dim
};

// A problem of one or more rows.
struct Trouble {
    int severity = 0; // see TopRow
    std::string mark; // severity as text: "!!"
    std::string who;  // name of the process
    std::string words;
    std::string why;               // the rule that applied
    std::string next;              // command for further diagnosis
    std::string column{};          // key of the column with the problem; empty: none
    std::vector<std::string> rows; // ids
};

// Part of an open row's page: a titled table, or lines of text (a star histogram, a stack).
struct DetailPart {
    std::string title;
    std::vector<Column> columns;
    std::vector<Row> rows;
    std::vector<std::string> lines;                // below the rows, if there are both
    std::vector<std::vector<std::string>> below{}; // stack per row; may be shorter than rows
};

struct Snapshot {
    uint64_t wall_ns = 0; // time of day at its end
    double seconds = 0;   // length of the interval
    std::string by;       // grouping of rows: "pid", "pod", ...
    std::vector<GpuState> gpus;
    std::vector<Fact> facts;
    std::optional<std::vector<Trouble>> troubles; // worst first; nullopt: not diagnosed
    std::vector<TopColumn> columns;
    std::vector<TopRow> rows;
    std::vector<TopRow> totals;     // 0 or 1: the sum line
    std::vector<DetailPart> detail; // page of the open row, if there is one
    std::string detail_of;          // id of that row; empty: of any open row
    std::string replayed{};         // text for the current moment of a recording; empty: live
    bool leaps = false;             // in a recording: not contiguous with the previous snapshot
};

// Filter and order of a snapshot's rows, for a live screen and for printed tables.
struct Arrangement {
    std::string sort{}; // key of a column; if there is no such column, rows keep the snapshot's order
    bool ascending = false;
    std::string then{};                // key of the secondary sort column, largest first
    std::string filter{};              // show only rows that contain this text; case is ignored
    bool tree = false;                 // group rows by branch; those without one come last
    std::vector<std::string> frozen{}; // fixed order, as ids; other rows follow
};

// Returns pointers into the snapshot. Empty cells come last in either direction. Equal rows are ordered by id, so that
// they do not swap places between intervals. The row for everything without an owner (TopRow::none) is last.
std::vector<const TopRow*> arrange(const Snapshot& snapshot, const Arrangement& arrangement);

// Sums of the columns marked `adds`.
Row sum_of(const std::vector<TopColumn>& columns, const std::vector<const TopRow*>& rows);
// The snapshot's sum line, if it has one, recomputed for the filtered rows.
std::optional<TopRow> sum_line(const Snapshot& snapshot, const Arrangement& arrangement);

// True if a text cell of the row, or its branch, contains the text. Case is ignored (ASCII).
bool has_text(const TopRow& row, std::string_view text);
bool contains(std::string_view text, std::string_view part);

// The column shows TopRow::none for a row without an owner.
bool shows_none(const TopColumn& column, const TopRow& row);

std::optional<size_t> column_index(const std::vector<TopColumn>& columns, std::string_view key);

} // namespace gpusnoop
