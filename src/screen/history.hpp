// SPDX-License-Identifier: Apache-2.0
// Recent values of all numbers on the screen, by row, for plots. Memory use is bounded, even if many rows appear and
// disappear.
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
        size_t points = 300;     // number of intervals
        size_t rows = 1000;      // number of rows; if there are more, the rows that disappeared first are dropped
        size_t bytes = 16 << 20; // memory for values
    };

    History() : History(Limits{}) {}
    explicit History(Limits limits) : limits_(limits) {}

    // Adds the values of an interval. Drops all earlier values if the grouping or the columns have changed.
    void add(const Snapshot& snapshot);

    // Returns the latest values of a row in a column, at most `last` values, oldest first. Unknown values are NaN. If
    // the row is unknown, the result is empty. behind: number of newest intervals to leave out.
    std::vector<double> values(std::string_view id, size_t column, size_t last = SIZE_MAX, size_t behind = 0) const;

    double seconds(size_t last, size_t behind = 0) const; // total length of the intervals that values() covers
    size_t rows() const { return series_.size(); }
    size_t bytes() const;

private:
    // Values of a row, ordered by interval and then by column. When `values` is full, it is used as a ring buffer.
    struct Series {
        std::vector<float> values;
        size_t begin = 0;  // index of the oldest interval in the ring
        uint64_t seen = 0; // number of the last interval that had this row
    };

    void restart(const Snapshot& snapshot);
    void append(Series& series, const Row* cells);
    void forget();
    size_t points_of(const Series& series) const { return width_ ? series.values.size() / width_ : 0; }

    Limits limits_;
    std::string by_;
    std::vector<std::string> keys_; // keys of all columns
    size_t width_ = 0;
    uint64_t now_ = 0;     // number of intervals so far
    uint64_t wall_ns_ = 0; // time of day at the end of the last interval
    std::vector<double> seconds_;
    std::map<std::string, Series, std::less<>> series_;
};

// Characters for plots.
enum class Glyphs {
    braille, // each character shows two values, each up to four steps high
    ascii,   // each character shows one value, up to two steps high
};

// Braille if the locale (LC_CTYPE) uses UTF-8, else ASCII.
Glyphs glyphs_of_locale();

// Number of values that a plot of this width shows.
size_t values_in(int columns, Glyphs glyphs);

// Draws a plot of this size, and returns its lines. The newest value is at the right edge, and the largest value
// reaches the top. Unknown values (NaN) leave gaps. 0 is drawn as a dot at the bottom, so that it differs from a gap.
std::vector<std::string> plot(std::span<const double> values, int columns, int lines, Glyphs glyphs);

// Draws a bar of this width. share: fraction (0..1) of the bar that is filled, from the left.
std::string bar(double share, int columns);

double largest(std::span<const double> values); // ignores unknown values (NaN); returns 0 if all are unknown

} // namespace gpusnoop
