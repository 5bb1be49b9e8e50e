// SPDX-License-Identifier: Apache-2.0
// One side of a comparison. The values of its recordings are summed by interval and measure.
#pragma once

#include "output/recording.hpp"
#include "tools/cudadiff/measures.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop::cudadiff {

// How recordings are divided into groups, which are compared separately.
enum class Group : uint8_t { whole, process, pod };

// Key of a sequence of values: a group, and one source of a measure.
struct Series {
    std::string group; // empty: the whole recording
    size_t measure = 0;
    size_t source = 0;
    std::string name; // for a split measure: value of its split key, such as "H2D"; otherwise empty
    auto operator<=>(const Series&) const = default;
};

// Sum of a series' values in a block or interval.
struct Sum {
    double sum = 0;
    std::map<double, double> sizes; // number of calls by size
    void add(const Sum& other);
};

// A few seconds of a run, with sums of one group's values. Blocks do not cover the time before the group's first
// activity and after its last one.
struct Block {
    double seconds = 0;
    std::map<Series, Sum> sums;
    const Sum* find(const Series& series) const;
};

// Facts about a side: where its recordings come from, and which data they lack.
struct Facts {
    std::set<std::string> hosts, versions, tools, commands;
    uint64_t lost = 0, estimated = 0; // number of lost calls or lines, and of rows that are estimates
    uint64_t lines = 0;               // number of lines of -e that are compared
    uint64_t lossy = 0;               // lines of -e that are not compared, because their run lost lines
    uint64_t events = 0;              // lines of -e from tools whose lines cannot be compared
    double unknown_graphs = 0;        // launches of graphs whose kernels are not known
    uint64_t dropped_rows = 0;        // rows that were dropped to limit memory
    uint64_t no_tool = 0;             // rows from runs whose first line is missing
    size_t runs = 0;
    double seconds = 0; // total duration of all runs
    Unread unread;
};

class Side {
public:
    explicit Side(Group by) : by_(by) {}

    // Throws Error if a file cannot be read, or has nothing to compare.
    void read(std::span<const std::string> files);

    const Facts& facts() const { return facts_; }
    const std::set<Series>& series() const { return series_; }
    bool has_tool(std::string_view tool) const { return facts_.tools.contains(std::string(tool)); }
    // The blocks of all runs of the tool. Each run is divided into blocks of equal length. There are at least twelve
    // blocks in total, if the runs are long enough.
    std::vector<Block> blocks(std::string_view tool, const std::string& group) const;

private:
    struct Interval {
        double end_ns = 0, length_ns = 0;
        std::map<Series, Sum> sums;
    };
    struct Run {
        std::string tool;
        std::map<int64_t, Interval> intervals; // key: end time in microseconds
        uint64_t lines = 0, lost = 0;
    };

    void add_record(const RecordedRun& of, const Record& record);
    void add_table_row(Run& run, const Record& record);
    void add_event(Run& run, const Record& row, double time_ns);
    void add_row(Run& run, const Record& record, double end_ns, double length_ns);
    void drop_lossy_lines(Run& run);
    void add(Interval& interval, const Record& record, std::string_view tool, const std::string& group);
    void merge_intervals();
    static std::vector<Block> cut(const std::map<int64_t, Interval>& intervals, const std::string& group, size_t parts);

    Group by_;
    Facts facts_;
    std::map<size_t, Run> runs_;
    std::set<Series> series_;
    size_t sums_ = 0;
};

} // namespace gpusnoop::cudadiff
