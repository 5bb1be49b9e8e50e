// SPDX-License-Identifier: Apache-2.0
// The last values of every number on the screen, row by row, for plots. Bounded however many rows come and go.
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

    void restart(const Snapshot& snapshot);
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

// Values over time as lines of text.
enum class Glyphs {
    braille, // two values a column, four steps a line
    ascii,   // one value a column, two steps a line
};

// What the locale (LC_CTYPE) can show: braille with UTF-8, ASCII without.
Glyphs glyphs_of_locale();

// How many values a plot of so many columns shows.
size_t values_in(int columns, Glyphs glyphs);

// `lines` lines of `columns` columns each, the newest value at the right edge, the top of them for the largest value. A
// value that is not known (NaN) leaves a gap; one that is 0 stands on the ground.
std::vector<std::string> plot(std::span<const double> values, int columns, int lines, Glyphs glyphs);

// One line of `columns` columns of which a share (0..1) is filled, from the left.
std::string bar(double share, int columns);

double largest(std::span<const double> values); // of those that are known; 0 if there is none

} // namespace gpusnoop
