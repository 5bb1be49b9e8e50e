// SPDX-License-Identifier: Apache-2.0
// What a live screen or a batch table is given for one interval. Plain data: whoever counts fills it, whoever shows it
// changes nothing in it.
#pragma once

#include "rows/table.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct TopColumn {
    Column column{};          // header, JSON key, unit, least width
    std::string_view about;   // a sentence for the help and the column chooser
    bool shown = true;        // at first
    bool device_side = false; // a figure of the GPU's own counters (NVML), marked as such
    std::string_view needs{}; // what has to be asked for at the start to fill it ("--latency"); empty: nothing
    bool stays = false;       // says what a row is: not scrolled away sideways. Where none says so, the first two shown
    bool adds = false;        // the sum line has a sum of it
    bool by_severity = false; // rows are sorted by how much is wrong with them, not by its text
    bool bad = false;         // whatever is in it but 0 is trouble
    bool trend = false;       // draws the history of the column that rows are sorted by; its cells are empty
};

// One process, and no other that gets its number later.
struct RowProcess {
    uint32_t pid = 0;
    uint64_t start_ns = 0; // CLOCK_BOOTTIME
};

struct TopRow {
    std::string id;                      // the same thing has the same id in the next snapshot
    std::string branch;                  // in the tree by pod: what it hangs under; empty: none
    Row cells;                           // one per column
    int severity = 0;                    // of what is wrong with it, the higher the worse; 0: nothing
    std::optional<RowProcess> process{}; // that it is, if it is one
    std::string none{};                  // a row of what belongs to none is called so ("(no pod)"), and comes last
};

// Device-side, from NVML; what is not known is empty.
struct GpuState {
    unsigned index = 0;
    std::string name;
    std::optional<double> utilization; // percent
    std::optional<double> power_watts;
    std::optional<uint64_t> memory_used; // bytes
    std::optional<uint64_t> memory_total;
    std::string users{}; // "trainer, solver +2"; empty: nobody, or not known
};

// Of the header: totals, probes, losses, own cost.
struct Fact {
    std::string label;
    std::string value;
    bool alarm = false;
    bool quiet = false; // need not be looked at
};

// Something is wrong with a row.
struct Trouble {
    int severity = 0; // as of rows
    std::string mark; // the same as a text: "!!"
    std::string who;
    std::string words;
    std::string why;               // when that is said
    std::string next;              // the command that says more
    std::string column{};          // key of the one that it is about; empty: none in particular
    std::vector<std::string> rows; // their ids
};

// Of the drill-down: a titled table, or lines of text (a star histogram, a stack).
struct DetailPart {
    std::string title;
    std::vector<Column> columns;
    std::vector<Row> rows;
    std::vector<std::string> lines;                // below the rows, if there are both
    std::vector<std::vector<std::string>> below{}; // each row: its stack; those at the end may be left out
};

struct Snapshot {
    uint64_t wall_ns = 0; // time of day at its end
    double seconds = 0;   // how long it is
    std::string by;       // what rows stand for: "pid", "pod", ...
    std::vector<GpuState> gpus;
    std::vector<Fact> facts;
    std::optional<std::vector<Trouble>> troubles; // the worst first; none: nobody looks for any
    std::vector<TopColumn> columns;
    std::vector<TopRow> rows;
    std::vector<TopRow> totals;     // 0 or 1: the sum line
    std::vector<DetailPart> detail; // of the row that is open, if one is
    std::string detail_of;          // its id; empty: of whichever is open
    std::string replayed{};         // of a recording: which of its moments this is; empty: it is now
    bool leaps = false;             // of a recording: it does not follow the one before
};

// Which rows of a snapshot are shown and in what order; the same for a live screen and a table that is printed.
struct Arrangement {
    std::string sort{}; // key of a column; where there is no such column, rows stay in the snapshot's order
    bool ascending = false;
    std::string then{};   // key of the column that rows are sorted by which are equal in the first, largest first
    std::string filter{}; // rows of which no text has this in it are left out; letter case is ignored
    bool tree = false;    // rows of a branch stand together; those of none come last
    std::vector<std::string> frozen{}; // ids in the order to be kept; rows that are not among them follow
};

// Pointers into the snapshot. Empty cells come last, whichever the direction; equal rows are in the order of their ids,
// so that they do not change places from one interval to the next. What belongs to none is last.
std::vector<const TopRow*> arrange(const Snapshot& snapshot, const Arrangement& arrangement);

// Of the columns that add up.
Row sum_of(const std::vector<TopColumn>& columns, const std::vector<const TopRow*>& rows);
// The snapshot's sum line, if it has one, for the rows that the filter leaves.
std::optional<TopRow> sum_line(const Snapshot& snapshot, const Arrangement& arrangement);

// A text is in one of the row's texts, or in its branch. Letter case is ignored (ASCII).
bool has_text(const TopRow& row, std::string_view text);
bool contains(std::string_view text, std::string_view part);

// The column says whose a row is, which is nobody's.
bool shows_none(const TopColumn& column, const TopRow& row);

std::optional<size_t> column_index(const std::vector<TopColumn>& columns, std::string_view key);

} // namespace gpusnoop
