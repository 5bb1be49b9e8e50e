// SPDX-License-Identifier: Apache-2.0
// Which rows of a snapshot are shown and in what order; the same for a live screen and a table that is printed.
#pragma once

#include "screen/snapshot.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

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
bool names_none(const TopColumn& column, const TopRow& row);

std::optional<size_t> column_index(const std::vector<TopColumn>& columns, std::string_view key);

} // namespace gpusnoop
