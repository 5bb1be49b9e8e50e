// SPDX-License-Identifier: Apache-2.0
// Merges rows of a recording by fewer keys or over longer times. Figures that cannot be merged, such as percentiles,
// become empty.
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

// A grouping key of rows.
struct RowKey {
    std::string_view name;                 // as in --by
    std::vector<std::string_view> headers; // headers of its columns
    std::vector<std::string_view> keys;    // its JSON keys
    enum class Of : unsigned char {
        call,    // a row without it covers several calls, and cannot be grouped by it
        process, // a row without it covers several processes, and cannot be grouped by it
        owner,   // a row of one process may have none
    } of = Of::call;
};

// Parses a list such as "pod,kernel". Throws UsageError.
std::vector<const RowKey*> row_keys_named(std::string_view list);
// The keys that a table's columns show.
std::vector<const RowKey*> row_keys_shown(std::span<const Column> columns);
// The key that a column shows; null for a column of figures.
const RowKey* row_key_of(const Column& column);

class MergedRows {
public:
    // keys: to merge by. recorded: the keys that the rows were recorded by; a row that lacks one of them has no such
    // value, for example no pod. with_frames: rows with different stacks are not merged.
    MergedRows(std::string_view tool, std::vector<const RowKey*> keys, std::vector<const RowKey*> recorded,
               bool with_frames)
        : tool_(tool), keys_(std::move(keys)), recorded_(std::move(recorded)), with_frames_(with_frames)
    {}

    // moment: number of its report, never decreasing. Throws Error if the row cannot be grouped by the keys.
    void add(const Record& row, size_t moment);

    // Merged rows, in the order of the first row of each.
    std::vector<Record> rows() const;

    // JSON keys of figures that cannot be merged.
    const std::set<std::string>& unmergeable() const { return unmergeable_; }

private:
    struct Value {
        Record::Value value;
        size_t moment = 0;
        bool known = true;
    };
    struct Group {
        std::map<std::string, Value> values;
        std::set<std::string> unknown; // missing in some row
        size_t rows = 0;
    };

    std::string id_of(const Record& row) const;
    void combine(Group& group, const std::string& key, const Record::Value& value, size_t moment);

    std::string tool_;
    std::vector<const RowKey*> keys_, recorded_;
    bool with_frames_;
    std::map<std::string, size_t> places_;
    std::vector<Group> groups_;
    std::set<std::string> unmergeable_;
    size_t last_ = 0;
};

} // namespace gpusnoop
