// SPDX-License-Identifier: Apache-2.0
#include "screen/history.hpp"

#include "base/text.hpp"
#include "screen/canvas.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <langinfo.h>
#include <limits>
#include <numeric>
#include <string_view>

namespace gpusnoop {

namespace {

float number(const Cell& cell)
{
    if (std::holds_alternative<std::string>(cell))
        return std::numeric_limits<float>::quiet_NaN();
    const double value = sort_value(cell);
    return std::isfinite(value) ? static_cast<float>(value) : std::numeric_limits<float>::quiet_NaN();
}

} // namespace

void History::restart(const Snapshot& snapshot)
{
    series_.clear();
    seconds_.clear();
    now_ = 0;
    wall_ns_ = 0;
    by_ = snapshot.by;
    keys_.clear();
    for (const TopColumn& column : snapshot.columns)
        keys_.emplace_back(column.column.key);
    width_ = keys_.size();
}

void History::add(const Snapshot& snapshot)
{
    const auto key_of = [](const TopColumn& column) { return column.column.key; };
    if (by_ != snapshot.by || !std::ranges::equal(keys_, snapshot.columns, {}, {}, key_of))
        restart(snapshot);
    if (width_ == 0 || limits_.points == 0)
        return;
    if (snapshot.wall_ns && snapshot.wall_ns == wall_ns_)
        return; // this interval has already been added
    wall_ns_ = snapshot.wall_ns;
    ++now_;
    if (seconds_.size() == limits_.points)
        seconds_.erase(seconds_.begin());
    seconds_.push_back(snapshot.seconds);

    for (const TopRow& row : snapshot.rows) {
        if (row.cells.size() != width_)
            continue;
        auto [found, is_new] = series_.try_emplace(row.id);
        Series& series = found->second;
        if (!is_new && series.seen == now_)
            continue; // two rows of this snapshot have the same id
        for (uint64_t gap = is_new ? 0 : std::min<uint64_t>(now_ - series.seen - 1, limits_.points); gap > 0; --gap)
            append(series, nullptr);
        append(series, &row.cells);
        series.seen = now_;
    }
    forget();
}

void History::append(Series& series, const Row* cells)
{
    size_t at = series.begin * width_;
    if (points_of(series) < limits_.points) {
        at = series.values.size();
        series.values.resize(at + width_);
    } else {
        series.begin = (series.begin + 1) % limits_.points;
    }
    for (size_t i = 0; i < width_; ++i)
        series.values[at + i] = cells ? number((*cells)[i]) : std::numeric_limits<float>::quiet_NaN();
}

// Drops rows that occur in none of the kept intervals. If the limits are still exceeded, drops the rows that
// disappeared first.
void History::forget()
{
    std::erase_if(series_, [&](const auto& of) { return now_ - of.second.seen >= limits_.points; });
    size_t used = bytes();
    if (series_.size() <= limits_.rows && used <= limits_.bytes)
        return;
    using Position = decltype(series_)::iterator;
    std::vector<Position> oldest;
    for (auto at = series_.begin(); at != series_.end(); ++at)
        oldest.push_back(at);
    std::ranges::stable_sort(oldest, {}, [](const Position& at) { return at->second.seen; });
    for (Position at : oldest) {
        if (series_.size() <= limits_.rows && used <= limits_.bytes)
            break;
        used -= at->second.values.capacity() * sizeof(float);
        series_.erase(at);
    }
}

size_t History::bytes() const
{
    return std::accumulate(series_.begin(), series_.end(), size_t{0}, [](size_t sum, const auto& of) {
        return sum + of.second.values.capacity() * sizeof(float);
    });
}

std::vector<double> History::values(std::string_view id, size_t column, size_t last, size_t behind) const
{
    auto found = series_.find(id);
    if (found == series_.end() || column >= width_)
        return {};
    const Series& series = found->second;
    const size_t points = points_of(series);
    std::vector<double> values;
    for (size_t i = 0; i < points; ++i)
        values.push_back(series.values[(series.begin + i) % points * width_ + column]);
    // If the row has disappeared, its values in the intervals since then are unknown.
    values.resize(points + (now_ - series.seen), std::numeric_limits<double>::quiet_NaN());
    values.resize(values.size() - std::min(behind, values.size()));
    const size_t shown = std::min({last, limits_.points, values.size()});
    values.erase(values.begin(), values.end() - static_cast<ptrdiff_t>(shown));
    return values;
}

double History::seconds(size_t last, size_t behind) const
{
    const auto end = seconds_.end() - static_cast<ptrdiff_t>(std::min(behind, seconds_.size()));
    const auto begin = end - std::min(static_cast<ptrdiff_t>(last), end - seconds_.begin());
    return std::accumulate(begin, end, 0.0);
}

namespace {

int values_per_column(Glyphs glyphs)
{
    return glyphs == Glyphs::braille ? 2 : 1;
}

int steps_per_line(Glyphs glyphs)
{
    return glyphs == Glyphs::braille ? 4 : 2;
}

// Height of a value in steps. A known value has at least one step, because no step means a gap.
int steps_of(double value, double top, int steps)
{
    if (!std::isfinite(value))
        return 0;
    if (!(top > 0))
        return 1;
    return std::clamp(static_cast<int>(std::lround(std::clamp(value / top, 0.0, 1.0) * steps)), 1, steps);
}

// Returns the character whose left and right half are this many steps high.
char32_t glyph(Glyphs glyphs, int left, int right)
{
    if (glyphs == Glyphs::ascii)
        return std::array{U' ', U'.', U':'}[static_cast<size_t>(left)];
    // From the bottom up, the dots of a braille pattern are bits 6, 2, 1, 0 on the left, and bits 7, 5, 4, 3 on the
    // right.
    constexpr std::array<char32_t, 5> left_dots{0, 0x40, 0x44, 0x46, 0x47};
    constexpr std::array<char32_t, 5> right_dots{0, 0x80, 0xa0, 0xb0, 0xb8};
    const char32_t dots = left_dots[static_cast<size_t>(left)] | right_dots[static_cast<size_t>(right)];
    return dots ? U'\u2800' + dots : U' ';
}

} // namespace

Glyphs glyphs_of_locale()
{
    return ::nl_langinfo(CODESET) == std::string_view("UTF-8") ? Glyphs::braille : Glyphs::ascii;
}

size_t values_in(int columns, Glyphs glyphs)
{
    return static_cast<size_t>(std::max(columns, 0)) * static_cast<size_t>(values_per_column(glyphs));
}

double largest(std::span<const double> values)
{
    double most = 0;
    for (double value : values)
        if (std::isfinite(value))
            most = std::max(most, value);
    return most;
}

std::vector<std::string> plot(std::span<const double> values, int columns, int lines, Glyphs glyphs)
{
    columns = std::max(columns, 0);
    lines = std::max(lines, 0);
    const size_t room = values_in(columns, glyphs);
    values = values.last(std::min(values.size(), room));
    const double highest = largest(values);

    const int per_line = steps_per_line(glyphs);
    std::vector<int> heights(room - values.size()); // 0 (a gap) where there are no values yet
    for (double value : values)
        heights.push_back(steps_of(value, highest, per_line * lines));

    std::vector<std::string> text(static_cast<size_t>(lines));
    const auto step = static_cast<size_t>(values_per_column(glyphs));
    for (int line = 0; line < lines; ++line) {
        const int below = (lines - 1 - line) * per_line;
        const auto filled = [&](size_t i) { return std::clamp(heights[i] - below, 0, per_line); };
        for (size_t i = 0; i < room; i += step)
            append_utf8(text[static_cast<size_t>(line)], glyph(glyphs, filled(i), filled(i + step - 1)));
    }
    return text;
}

std::string bar(double share, int columns)
{
    columns = std::max(columns, 0);
    share = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
    const auto filled = static_cast<size_t>(std::lround(share * columns));
    std::string text(filled, '|');
    text.resize(static_cast<size_t>(columns), ' ');
    return text;
}

} // namespace gpusnoop
