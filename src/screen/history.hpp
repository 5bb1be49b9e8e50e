// SPDX-License-Identifier: Apache-2.0
// Recent values of every number on the screen, per row, for plots. Uses bounded memory, however many rows appear.
#pragma once

#include "screen/snapshot.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

class History {
public:
    struct Limits {
        size_t points = 300;     // intervals
        size_t rows = 1000;      // beyond it, the rows not seen for longest are dropped
        size_t bytes = 16 << 20; // of values
    };

    History() : History(Limits{}) {}
    explicit History(Limits limits) : limits_(limits) {}

    // Adds an interval. Starts over if the grouping or the columns have changed.
    void add(const Snapshot& snapshot);

    // At most `last` values of a column, oldest first, up to the newest interval; NaN if unknown. Empty for an unknown
    // row. behind: leave out this many of the newest intervals.
    std::vector<double> values(std::string_view id, size_t column, size_t last = SIZE_MAX, size_t behind = 0) const;

    double seconds(size_t last, size_t behind = 0) const; // total length of the last `last` intervals
    size_t rows() const { return series_.size(); }
    size_t bytes() const;

private:
    // Values of one row: all columns of an interval, then those of the next one. A ring buffer once it is full.
    struct Series {
        std::vector<float> values;
        size_t begin = 0;  // index of the oldest interval in the ring
        uint64_t seen = 0; // number of the last interval with this row
    };

    void restart(const Snapshot& snapshot);
    void append(Series& series, const Row* cells);
    void forget();
    size_t points_of(const Series& series) const { return width_ ? series.values.size() / width_ : 0; }

    Limits limits_;
    std::string by_;
    std::vector<std::string> keys_; // of all columns
    size_t width_ = 0;
    uint64_t now_ = 0;     // number of intervals so far
    uint64_t wall_ns_ = 0; // when the last one ended
    std::vector<double> seconds_;
    std::map<std::string, Series, std::less<>> series_;
};

// Characters for plots.
enum class Glyphs {
    braille, // two values per column, four steps per line
    ascii,   // one value per column, two steps per line
};

// Braille in a UTF-8 locale (LC_CTYPE), else ASCII.
Glyphs glyphs_of_locale();

// Number of values that a plot of this width shows.
size_t values_in(int columns, Glyphs glyphs);

// A plot as `lines` lines of `columns` columns each. The newest value is at the right edge, and the largest value
// reaches the top. An unknown value (NaN) leaves a gap; 0 is shown as one step.
std::vector<std::string> plot(std::span<const double> values, int columns, int lines, Glyphs glyphs);

// A bar of `columns` columns, filled from the left to this share (0..1).
std::string bar(double share, int columns);

double largest(std::span<const double> values); // ignores unknown values; 0 if all are unknown

} // namespace gpusnoop
