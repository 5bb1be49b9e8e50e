// SPDX-License-Identifier: Apache-2.0
// One column table feeds the text and the JSON output, so the two cannot drift apart.
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

// How a value is written. In JSON all of them but text, dim3, hex and time are plain numbers.
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
    std::string_view header; // as in "LAUNCHES"; unit in the name where there is one
    std::string_view key;    // JSON key, a whole word with its unit ("latency_p99_ns")
    Unit unit = Unit::count;
    int16_t width = 8;           // least width in text; the last column of a row is never padded
    bool in_text = true;         // false: JSON only
    bool in_json = true;         // false: text only
    bool of_calls = false;       // adds up calls: an estimate where those are sampled
    bool is_level = false;       // what there is at the end of an interval, not what has come in it
    bool on_request = false;     // for the manual: text shows it only with --columns
    std::string_view about = {}; // for the manual: what it is; empty: as the column before

    bool is_called(std::string_view name) const { return !name.empty() && (key == name || header == name); }
};

using Dim3 = std::array<uint32_t, 3>;

// A count that is not known to be all: of what began before it could be counted. ">=1.5M" in text, the number in JSON,
// where a key of its own says so.
struct AtLeast {
    uint64_t count = 0;
    bool operator==(const AtLeast&) const = default;
};

// A figure told from a part of what it is about. "~1.5M" in text, the number in JSON, where keys of their own say so.
struct Estimate {
    std::variant<uint64_t, double> value;
    bool operator==(const Estimate&) const = default;
};

// An empty cell is "cannot be known": "-" in text, no key at all in JSON. It is not 0.
// Copied, moved and destroyed in one place: each of the hundreds of functions that make one would have that in it.
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

using Row = std::vector<Cell>; // one cell per column, in the column table's order

const Cell& cell_at(const Row& row, size_t column); // an empty one where the row has none

// Value of a cell as a number for sorting; -inf where it is empty, 0 for text.
double sort_value(const Cell& cell);

// The same figure as an estimate; what is none stays as it is.
Cell estimate_of(const Cell& cell);

// The columns that people are shown, as recordings name them, so that a table can be shown again: one text for each, as
// "LAUNCHES launches count 9 calls".

// Those that are shown; none: it is not for people.
std::vector<std::string> table_columns(std::span<const Column> columns);

// What was recorded of a table.
class RecordedColumns {
public:
    // What is no column is left out: whoever wrote it.
    explicit RecordedColumns(std::span<const std::string> texts);
    RecordedColumns(const RecordedColumns&) = delete;
    RecordedColumns& operator=(const RecordedColumns&) = delete;

    const std::vector<Column>& all() const { return all_; }

private:
    void add(const std::string& text);

    std::deque<std::string> names_; // which columns only refer to
    std::vector<Column> all_;
};

// How a cell is written for a person: in the text output and on the screen alike.
bool is_left_aligned(Unit unit);
size_t width_of(const Column& column); // least columns of text; never 0

class CellText {
public:
    // Appends the text of a cell, made safe for the terminal and cut to `width` columns; only text is cut. Returns
    // the columns appended.
    size_t append(std::string& to, Unit unit, const Cell& cell, size_t width = std::string::npos);

    void append_clock(std::string& to, uint64_t wall_ns) { time_.append_clock(to, wall_ns); }

private:
    LocalTime time_;
};

} // namespace gpusnoop
