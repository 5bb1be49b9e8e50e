// SPDX-License-Identifier: Apache-2.0
// Columns and cells, shared by the text and JSON outputs so that the two cannot diverge.
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

// Format of a value. In JSON all but text, dim3, hex and time are plain numbers.
enum class Unit : uint8_t {
    text,     // left-aligned; made safe for the terminal
    count,    // integer
    rate,     // double, one decimal in text
    bytes,    // integer; human form (1.5M) in text
    ns_as_us, // integer nanoseconds; shown as microseconds
    seconds,  // integer nanoseconds; shown as seconds with six decimals
    percent,  // double
    dim3,     // "x,y,z" in text, [x,y,z] in JSON
    hex,      // "0x7f00..." in both
    time,     // nanoseconds of wall-clock time; HH:MM:SS in text, ISO 8601 with microseconds in JSON
};

struct Column {
    std::string_view header; // "LAUNCHES"; includes the unit if there is one, as in "LAT(us)"
    std::string_view key;    // JSON key: whole words and the unit, as in "latency_p99_ns"
    Unit unit = Unit::count;
    int16_t width = 8;           // minimum width in text; the last column of a row is never padded
    bool in_text = true;         // false: JSON only
    bool in_json = true;         // false: text only
    bool of_calls = false;       // a figure of counted calls, so an estimate if calls are sampled
    bool is_level = false;       // the state at the end of the interval, not a sum over it
    bool on_request = false;     // for the manual: text shows it only with --columns
    std::string_view about = {}; // for the manual: description; empty: the previous column's covers it

    bool is_called(std::string_view name) const { return !name.empty() && (key == name || header == name); }
};

using Dim3 = std::array<uint32_t, 3>;

// A lower bound: things that began before tracing are not counted. ">=1.5M" in text; in JSON the number, and a separate
// key marks it as a lower bound.
struct AtLeast {
    uint64_t count = 0;
    bool operator==(const AtLeast&) const = default;
};

// A figure estimated from a sample. "~1.5M" in text; in JSON the number, and separate keys give its accuracy.
struct Estimate {
    std::variant<uint64_t, double> value;
    bool operator==(const Estimate&) const = default;
};

// A value of a table. Empty means unknown, not 0: "-" in text, no key in JSON.
// Copies, moves and destructor are out of line: hundreds of functions create cells, and would each inline that code.
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

// An empty cell for an empty text, or for no value.
inline Cell text_if_any(std::string_view text)
{
    return text.empty() ? Cell() : Cell(std::string(text));
}

template<class T>
Cell cell_if(const std::optional<T>& value)
{
    if constexpr (std::unsigned_integral<T>)
        return value ? Cell(uint64_t{*value}) : Cell();
    else
        return value ? Cell(*value) : Cell();
}

using Row = std::vector<Cell>; // one cell per column, in the columns' order

const Cell& cell_at(const Row& row, size_t column); // an empty cell if the row is shorter

// Value of a cell as a number for sorting; -inf if it is empty, 0 for text.
double sort_value(const Cell& cell);

// Converts a number to an estimate; returns other cells unchanged.
Cell estimate_of(const Cell& cell);

// Descriptions of the text columns of a table, as stored in recordings for --replay: "LAUNCHES launches count 9 calls".
// Empty if the table has no text columns.
std::vector<std::string> table_columns(std::span<const Column> columns);

// Parser of such descriptions.
class RecordedColumns {
public:
    // Ignores invalid texts: recordings are untrusted.
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
    // Appends a cell as text, made safe for the terminal. Strings are cut to `width` terminal columns. Returns the
    // number of terminal columns appended.
    size_t append(std::string& to, Unit unit, const Cell& cell, size_t width = std::string::npos);

    void append_clock(std::string& to, uint64_t wall_ns) { time_.append_clock(to, wall_ns); }

private:
    LocalTime time_;
};

} // namespace gpusnoop
