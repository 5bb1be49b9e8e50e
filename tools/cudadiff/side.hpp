// SPDX-License-Identifier: Apache-2.0
// One of the two that are compared: what its recordings say of each second, added up by measure.
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

// What is compared one by one.
enum class Group : uint8_t { whole, process, pod };

// A sequence of figures: of a group, from one source of a measure.
struct Series {
    std::string group; // empty: the whole
    size_t measure = 0;
    size_t source = 0;
    std::string name; // of a measure that is split
    auto operator<=>(const Series&) const = default;
};

// What a row says, added up over some time.
struct Sum {
    double sum = 0;
    std::map<double, double> sizes; // how many calls had each
    void add(const Sum& other);
};

// Seconds in a row, of one run: from the first to the last in which its group did anything.
struct Block {
    double seconds = 0;
    std::map<Series, Sum> sums;
    const Sum* find(const Series& series) const;
};

// What a reader has to know of a side besides its figures.
struct Facts {
    std::set<std::string> hosts, versions, tools, commands;
    uint64_t lost = 0, estimated = 0;
    uint64_t lines = 0;        // of -e, that were made into rows
    uint64_t lossy = 0;        // that were not, for others of their run were lost
    uint64_t events = 0;       // of tools whose lines are not compared
    double unknown_graphs = 0; // launches of those whose kernels are not known
    uint64_t beyond = 0;       // rows that there was no room for
    uint64_t no_tool = 0;      // rows of runs whose first line is missing
    size_t runs = 0;
    double seconds = 0; // of all runs together
    Unread unread;
};

class Side {
public:
    explicit Side(Group by) : by_(by) {}

    // Throws Error where a file cannot be read, or where it has nothing to compare.
    void read(std::span<const std::string> files);

    const Facts& facts() const { return facts_; }
    const std::set<Series>& series() const { return series_; }
    bool has_tool(std::string_view tool) const { return facts_.tools.contains(std::string(tool)); }
    // Of all runs of the tool, one after the other. Each run is cut into parts of the same length: together, where
    // there are enough seconds, at least twelve.
    std::vector<Block> blocks(std::string_view tool, const std::string& group) const;

private:
    struct Interval {
        double end_ns = 0, length_ns = 0;
        std::map<Series, Sum> sums;
    };
    struct Run {
        std::string tool;
        std::map<int64_t, Interval> intervals; // by their end, in microseconds
        uint64_t lines = 0, lost = 0;
    };

    void take(const RunOf& of, const Record& record);
    void take_row(Run& run, const Record& record);
    void take_event(Run& run, const Record& row, double time_ns);
    void add_row(Run& run, const Record& record, double end_ns, double length_ns);
    void leave_out_lossy_lines(Run& run);
    void add(Interval& interval, const Record& record, std::string_view tool, const std::string& group);
    void make_room();
    static std::vector<Block> cut(const std::map<int64_t, Interval>& intervals, const std::string& group, size_t parts);

    Group by_;
    Facts facts_;
    std::map<size_t, Run> runs_;
    std::set<Series> series_;
    size_t sums_ = 0;
};

} // namespace gpusnoop::cudadiff
