// SPDX-License-Identifier: Apache-2.0
// Columns and cells of tables, from which the text and JSON outputs are both written, so that the two always agree.
#pragma once

#include "base/clock.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gpusnoop {

// Format of a value. In JSON, all units except text, dim3, hex and time are plain numbers.
enum class Unit : uint8_t {
    text,     // left-aligned; control characters are replaced
    count,    // integer
    rate,     // double, one decimal in text
    bytes,    // integer; shown as 1.5M in text
    ns_as_us, // integer nanoseconds; shown as microseconds
    seconds,  // integer nanoseconds; shown as seconds with six decimals
    percent,  // double
    dim3,     // "x,y,z" in text, [x,y,z] in JSON
    hex,      // "0x7f00..." in text and JSON
    time,     // nanoseconds of wall-clock time; HH:MM:SS in text, ISO 8601 with microseconds in JSON
};

struct Column {
    std::string_view header; // such as "LAUNCHES"; includes the unit if there is one, as in "LAT(us)"
    std::string_view key;    // JSON key, in whole words and with the unit, as in "latency_p99_ns"
    Unit unit = Unit::count;
    int16_t width = 8;       // minimum width in text; the last column of a row is never padded
    bool in_text = true;     // false: shown only in JSON
    bool in_json = true;     // false: shown only in text
    bool of_calls = false;   // computed from counted calls, and so an estimate if calls are sampled
    bool is_level = false;   // true: a state at the end of the interval; false: a sum over the interval
    bool on_request = false; // shown in text only if requested with --columns
    // description in the manual; if empty, the previous column's description covers this column too
    std::string_view about = {};

    bool is_called(std::string_view name) const { return !name.empty() && (key == name || header == name); }
};

using Dim3 = std::array<uint32_t, 3>;

// A count that is a lower bound, because it does not include what existed before tracing began. Shown as ">=1.5M" in
// text; in JSON as a number, which a separate key marks as a lower bound.
struct AtLeast {
    uint64_t count = 0;
    bool operator==(const AtLeast&) const = default;
};

// A value estimated from a sample. Shown as "~1.5M" in text; in JSON as a number, with its accuracy in separate keys.
struct Estimate {
    std::variant<uint64_t, double> value;
    bool operator==(const Estimate&) const = default;
};

// A value in a table. An empty cell means unknown, not 0; it is shown as "-" in text and omitted in JSON.
// Copying, moving and destruction are not inline, to keep the code small: hundreds of functions create cells.
class Cell : public std::variant<std::monostate, uint64_t, int64_t, double, std::string, Dim3, AtLeast, Estimate> {
public:
    using variant::variant;
    Cell() noexcept = default;
    Cell(const Cell& other);
    Cell(Cell&& other) noexcept;
    Cell& operator=(const Cell& other);
    Cell& operator=(Cell&& other) noexcept;
    ~Cell();
};

// Returns an empty cell if the text is empty.
inline Cell text_if_any(std::string_view text)
{
    return text.empty() ? Cell() : Cell(std::string(text));
}

// Returns an empty cell if there is no value.
template<class T>
Cell cell_if(const std::optional<T>& value)
{
    if constexpr (std::unsigned_integral<T>)
        return value ? Cell(uint64_t{*value}) : Cell();
    else
        return value ? Cell(*value) : Cell();
}

using Row = std::vector<Cell>; // one cell per column, in the columns' order

const Cell& cell_at(const Row& row, size_t column); // returns an empty cell if the row is too short

// Value of a cell as a number for sorting; -inf if it is empty or NaN, 0 for text.
double sort_value(const Cell& cell);

// Converts a number to an estimate; returns other cells unchanged.
Cell estimate_of(const Cell& cell);

// Descriptions of the columns that a table has in text output: header, JSON key, unit, width, then "calls" or "level"
// if the column has that property. An example is "LAUNCHES launches count 9 calls". Recordings store them for --replay.
std::vector<std::string> table_columns(std::span<const Column> columns);

// Parses the descriptions that table_columns() returns.
class RecordedColumns {
public:
    // Ignores invalid texts, because recordings are untrusted.
    explicit RecordedColumns(std::span<const std::string> texts);
    RecordedColumns(const RecordedColumns&) = delete;
    RecordedColumns& operator=(const RecordedColumns&) = delete;

    const std::vector<Column>& all() const { return all_; }

private:
    void add(const std::string& text);

    std::deque<std::string> names_; // storage for the columns' string views
    std::vector<Column> all_;
};

// Layout of cells in the text output and on the screen.
bool is_left_aligned(Unit unit);
size_t width_of(const Column& column); // minimum width in terminal columns; never 0

class CellText {
public:
    // Appends a cell as text without control characters. Texts are truncated to `width` terminal columns. Returns the
    // number of terminal columns appended.
    size_t append(std::string& to, Unit unit, const Cell& cell, size_t width = std::string::npos);

    void append_clock(std::string& to, uint64_t wall_ns) { time_.append_clock(to, wall_ns); }

private:
    LocalTime time_;
};

} // namespace gpusnoop
