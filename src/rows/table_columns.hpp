// SPDX-License-Identifier: Apache-2.0
// The columns that people are shown, as recordings name them, so that a table can be shown again: one text for each, as
// "LAUNCHES launches count 9 calls".
#pragma once

#include "rows/table.hpp"

#include <deque>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

// Those that are shown; none: it is not for people.
std::vector<std::string> table_columns(std::span<const Column> columns);

// What was recorded of a table.
class RecordedColumns {
public:
    // What is no column is left out: whoever wrote it.
    explicit RecordedColumns(std::span<const std::string> texts);
    RecordedColumns(const RecordedColumns&) = delete;
    RecordedColumns& operator=(const RecordedColumns&) = delete;

    const std::vector<Column>& all() const { return all_; }

private:
    void add(const std::string& text);

    std::deque<std::string> names_; // which columns only refer to
    std::vector<Column> all_;
};

} // namespace gpusnoop
