// SPDX-License-Identifier: Apache-2.0
#include "screen/history.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

void History::start_anew(const Snapshot& snapshot)
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
        start_anew(snapshot);
    if (width_ == 0 || limits_.points == 0)
        return;
    if (snapshot.wall_ns && snapshot.wall_ns == wall_ns_)
        return; // the same interval is shown again
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
            continue; // an id twice
        for (uint64_t gone = is_new ? 0 : std::min<uint64_t>(now_ - series.seen - 1, limits_.points); gone > 0; --gone)
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

// Rows that have been gone for as long as a plot is; then those that were seen longest ago, until the rest fits.
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
    // It may be gone.
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

} // namespace gpusnoop
