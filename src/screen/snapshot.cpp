// SPDX-License-Identifier: Apache-2.0
#include "screen/snapshot.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace gpusnoop {

namespace {

char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// A row with its sort key, which is extracted only once.
struct Sorted {
    const TopRow* row;
    bool empty;
    double number;
    std::string_view text;
};

bool comes_before(const Sorted& a, const Sorted& b, bool ascending)
{
    if (a.empty != b.empty)
        return b.empty;
    const auto value = [](const Sorted& of) { return std::tie(of.number, of.text); };
    if (value(a) != value(b))
        return ascending ? value(a) < value(b) : value(b) < value(a);
    const auto id = [](const Sorted& of) { return std::pair(of.row->id.size(), std::string_view(of.row->id)); };
    return id(a) < id(b); // shorter ids come first, so that 9 comes before 10
}

// Sorts rows by a column (stable).
std::vector<const TopRow*> sort(std::vector<const TopRow*> rows, const Snapshot& snapshot, size_t column,
                                bool ascending)
{
    if (snapshot.columns[column].by_severity) {
        const auto by = [&](const TopRow* row) { return ascending ? row->severity : -row->severity; };
        std::ranges::stable_sort(rows, {}, by);
        return rows;
    }
    std::vector<Sorted> sorted;
    sorted.reserve(rows.size());
    for (const TopRow* row : rows) {
        const Cell& cell = cell_at(row->cells, column);
        const auto* text = std::get_if<std::string>(&cell);
        const double number = sort_value(cell);
        const bool empty = number == sort_value(Cell{}); // also true for NaN: sort_value() returns -inf for both
        sorted.push_back({row, empty, number, text ? std::string_view(*text) : std::string_view()});
    }
    std::ranges::stable_sort(sorted, [&](const Sorted& a, const Sorted& b) { return comes_before(a, b, ascending); });
    std::ranges::transform(sorted, rows.begin(), &Sorted::row);
    return rows;
}

// Sorts rows by the rank of key(row) (stable). Rows without a rank come last.
template<typename Rank>
void group(std::vector<const TopRow*>& rows, const std::unordered_map<std::string_view, size_t>& ranks, Rank key)
{
    std::ranges::stable_sort(rows, {}, [&](const TopRow* row) {
        auto found = ranks.find(key(*row));
        return found == ranks.end() ? SIZE_MAX : found->second;
    });
}

uint64_t count_of(const Cell& cell)
{
    if (const auto* least = std::get_if<AtLeast>(&cell))
        return least->count;
    return std::holds_alternative<uint64_t>(cell) ? std::get<uint64_t>(cell) : 0;
}

double figure(const Cell& cell)
{
    return std::holds_alternative<std::monostate>(cell) ? 0.0 : sort_value(cell);
}

// Adds two cells, at least one of which is an estimate.
Cell estimated_sum(const Cell& a, const Cell& b)
{
    const auto whole = [](const Cell& cell) {
        const auto* estimate = std::get_if<Estimate>(&cell);
        return std::holds_alternative<uint64_t>(cell) || (estimate && estimate->value.index() == 0);
    };
    const double sum = figure(a) + figure(b);
    if (whole(a) || whole(b))
        return Estimate{static_cast<uint64_t>(sum)};
    return Estimate{sum};
}

void add_to(Cell& sum, const Cell& cell)
{
    if (std::holds_alternative<std::monostate>(cell))
        return;
    if (std::holds_alternative<Estimate>(cell) || std::holds_alternative<Estimate>(sum)) {
        sum = estimated_sum(sum, cell);
        return;
    }
    const bool at_least = std::holds_alternative<AtLeast>(cell) || std::holds_alternative<AtLeast>(sum);
    const bool is_count = std::holds_alternative<AtLeast>(cell) || std::holds_alternative<uint64_t>(cell);
    if (is_count && !std::holds_alternative<double>(sum)) {
        const uint64_t count = count_of(sum) + count_of(cell);
        sum = at_least ? Cell(AtLeast{count}) : Cell(count);
    } else if (!std::holds_alternative<std::string>(cell)) {
        sum = figure(sum) + figure(cell); // double, because a replayed column may mix counts and negative numbers
    }
}

bool passes(const TopRow& row, const std::string& filter)
{
    return filter.empty() || has_text(row, filter);
}

} // namespace

Row sum_of(const std::vector<TopColumn>& columns, const std::vector<const TopRow*>& rows)
{
    Row sum(columns.size());
    for (const TopRow* row : rows)
        for (size_t i = 0; i < columns.size(); i++)
            if (columns[i].adds)
                add_to(sum[i], cell_at(row->cells, i));
    return sum;
}

std::optional<TopRow> sum_line(const Snapshot& snapshot, const Arrangement& arrangement)
{
    if (snapshot.totals.empty())
        return std::nullopt;
    TopRow line = snapshot.totals.front();
    if (arrangement.filter.empty())
        return line;
    std::vector<const TopRow*> rows;
    for (const TopRow& row : snapshot.rows)
        if (passes(row, arrangement.filter))
            rows.push_back(&row);
    const Row sum = sum_of(snapshot.columns, rows);
    for (size_t i = 0; i < std::min(line.cells.size(), sum.size()); i++)
        if (snapshot.columns[i].adds)
            line.cells[i] = sum[i];
    return line;
}

std::optional<size_t> column_index(const std::vector<TopColumn>& columns, std::string_view key)
{
    for (size_t i = 0; i < columns.size(); ++i)
        if (columns[i].column.key == key)
            return i;
    return std::nullopt;
}

bool shows_none(const TopColumn& column, const TopRow& row)
{
    return !row.none.empty() && column.stays && column.column.unit == Unit::text && !column.by_severity;
}

bool contains(std::string_view text, std::string_view part)
{
    const auto same = [](char a, char b) { return lower(a) == lower(b); };
    return part.empty() || std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

bool has_text(const TopRow& row, std::string_view text)
{
    return contains(row.branch, text) || std::ranges::any_of(row.cells, [&](const Cell& cell) {
               const auto* of_cell = std::get_if<std::string>(&cell);
               return of_cell && contains(*of_cell, text);
           });
}

std::vector<const TopRow*> arrange(const Snapshot& snapshot, const Arrangement& arrangement)
{
    std::vector<const TopRow*> rows;
    rows.reserve(snapshot.rows.size());
    for (const TopRow& row : snapshot.rows)
        if (passes(row, arrangement.filter))
            rows.push_back(&row);
    if (auto column = column_index(snapshot.columns, arrangement.then))
        rows = sort(std::move(rows), snapshot, *column, false);
    if (auto column = column_index(snapshot.columns, arrangement.sort))
        rows = sort(std::move(rows), snapshot, *column, arrangement.ascending);

    std::ranges::stable_sort(rows, {}, [](const TopRow* row) { return !row->none.empty(); });

    std::unordered_map<std::string_view, size_t> ranks;
    for (const std::string& id : arrangement.frozen)
        ranks.emplace(id, ranks.size());
    if (!ranks.empty())
        group(rows, ranks, [](const TopRow& row) -> std::string_view { return row.id; });

    if (arrangement.tree) {
        ranks.clear();
        for (const TopRow* row : rows)
            if (!row->branch.empty())
                ranks.emplace(row->branch, ranks.size());
        group(rows, ranks, [](const TopRow& row) -> std::string_view { return row.branch; });
    }
    return rows;
}

} // namespace gpusnoop
