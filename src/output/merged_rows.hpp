// SPDX-License-Identifier: Apache-2.0
// Merges recorded rows, to group them by fewer keys or to combine several reports. Values that cannot be merged, such
// as percentiles, become empty.
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

// A key that rows can be grouped by.
struct RowKey {
    std::string_view name;                 // the key's name in --by
    std::vector<std::string_view> headers; // headers of the key's columns
    std::vector<std::string_view> keys;    // JSON keys of the key's columns
    // Meaning of a row that lacks this key, in a recording that is not grouped by the key.
    enum class Of : unsigned char {
        call,    // the row covers several values of the key, such as kernels, and cannot be grouped by it
        process, // the row covers several processes, and cannot be grouped by the key
        owner,   // as for `process`; but a row of a single process can be grouped: the process has no such owner
    } of = Of::call;
};

// Parses a list of keys such as "pod,kernel". Throws UsageError.
std::vector<const RowKey*> row_keys_named(std::string_view list);
// The keys that are shown by a table's columns.
std::vector<const RowKey*> row_keys_shown(std::span<const Column> columns);
// The key that is shown by a column; null if the column shows a value, such as a number of calls.
const RowKey* row_key_of(const Column& column);

class MergedRows {
public:
    // keys: the keys to group by. recorded: the keys by which the recorded rows are grouped. A row that lacks one of
    // these keys has no value for it; its process has no pod, for example. with_frames: rows with different stacks are
    // not merged.
    MergedRows(std::string_view tool, std::vector<const RowKey*> keys, std::vector<const RowKey*> recorded,
               bool with_frames)
        : tool_(tool), keys_(std::move(keys)), recorded_(std::move(recorded)), with_frames_(with_frames)
    {}

    // moment: number of the report that contains the row; must not decrease from call to call. Throws Error if the row
    // cannot be grouped by the keys.
    void add(const Record& row, size_t moment);

    // The merged rows, in the order in which their first rows were added.
    std::vector<Record> rows() const;

    // JSON keys of values that could not be merged.
    const std::set<std::string>& unmergeable() const { return unmergeable_; }

private:
    struct Value {
        Record::Value value;
        size_t moment = 0;
        bool known = true;
    };
    struct Group {
        std::map<std::string, Value> values;
        std::set<std::string> unknown; // keys that are missing in at least one row
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
