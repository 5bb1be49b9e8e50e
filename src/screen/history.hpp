// SPDX-License-Identifier: Apache-2.0
// The last values of every number on the screen, row by row, for plots. Bounded however many rows come and go.
#pragma once

#include "screen/snapshot.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

class History {
public:
    struct Limits {
        size_t points = 300;     // intervals
        size_t rows = 1000;      // ids; those seen longest ago go first
        size_t bytes = 16 << 20; // of values
    };

    History() : History(Limits{}) {}
    explicit History(Limits limits) : limits_(limits) {}

    // A new interval. Rows that stand for something else than before, or other columns, start it anew.
    void add(const Snapshot& snapshot);

    // The values of a column, oldest first, the last one of the newest interval; NaN where nothing is known. At most
    // `last` of them; empty for a row that has not been seen. behind: as it was that many intervals ago.
    std::vector<double> values(std::string_view id, size_t column, size_t last = SIZE_MAX, size_t behind = 0) const;

    double seconds(size_t last, size_t behind = 0) const; // how long the last so many intervals took
    size_t rows() const { return series_.size(); }
    size_t bytes() const;

private:
    // Interval by interval, all columns of one together: a ring once it is full.
    struct Series {
        std::vector<float> values;
        size_t begin = 0; // interval of the ring that is the oldest
        uint64_t seen = 0;
    };

    void start_anew(const Snapshot& snapshot);
    void append(Series& series, const Row* cells);
    void forget();
    size_t points_of(const Series& series) const { return width_ ? series.values.size() / width_ : 0; }

    Limits limits_;
    std::string by_;
    std::vector<std::string> keys_; // of all columns
    size_t width_ = 0;
    uint64_t now_ = 0;     // intervals so far
    uint64_t wall_ns_ = 0; // when the last one ended
    std::vector<double> seconds_;
    std::map<std::string, Series, std::less<>> series_;
};

} // namespace gpusnoop
