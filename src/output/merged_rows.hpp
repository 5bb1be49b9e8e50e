// SPDX-License-Identifier: Apache-2.0
// Rows of a recording added up: only what adds up is added, and what cannot be told of several rows has no value.
#pragma once

#include "output/record.hpp"
#include "rows/table.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// What rows can be told apart by.
struct RowKey {
    std::string_view name;                 // as --by has it
    std::vector<std::string_view> headers; // of the columns that show it
    std::vector<std::string_view> keys;    // which say it in JSON
    enum class Of : unsigned char {
        call,    // rows that do not say it are of several, and cannot be told apart
        process, // the same: rows of several processes have none
        owner,   // a process may have none
    } of = Of::call;
};

// Those that "pod,kernel" names. Throws UsageError.
std::vector<const RowKey*> row_keys_named(std::string_view list);
// Those that a table's columns show.
std::vector<const RowKey*> row_keys_shown(std::span<const Column> columns);
// Whether a column shows a key of rows, rather than a figure.
const RowKey* row_key_of(const Column& column);

class MergedRows {
public:
    // told: what the rows were told apart by when they were recorded: who does not say it has none.
    MergedRows(std::string_view tool, std::vector<const RowKey*> keys, std::vector<const RowKey*> told,
               bool with_frames)
        : tool_(tool), keys_(std::move(keys)), told_(std::move(told)), with_frames_(with_frames)
    {}

    // moment: of which report it is; they only grow. Throws Error where the row does not say what it is told apart by.
    void add(const Record& row, size_t moment);

    // Of all that were added, in the order of their first row.
    std::vector<Record> rows() const;

    // Keys of figures that rows have, and that cannot be told of several together.
    const std::set<std::string>& unmergeable() const { return unmergeable_; }

private:
    struct Value {
        Record::Value value;
        size_t moment = 0;
        bool known = true;
    };
    struct Group {
        std::map<std::string, Value> values;
        std::set<std::string> unknown; // some row did not have it
        size_t rows = 0;
    };

    std::string id_of(const Record& row) const;
    void combine(Group& group, const std::string& key, const Record::Value& value, size_t moment);

    std::string tool_;
    std::vector<const RowKey*> keys_, told_;
    bool with_frames_; // tell rows apart, too
    std::map<std::string, size_t> places_;
    std::vector<Group> groups_;
    std::set<std::string> unmergeable_;
    size_t last_ = 0;
};

} // namespace gpusnoop
