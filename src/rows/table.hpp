// SPDX-License-Identifier: Apache-2.0
// One column table feeds the text and the JSON output, so the two cannot drift apart.
#pragma once

#include <array>
#include <cstdint>
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
using Row = std::vector<Cell>; // one cell per column, in the column table's order

const Cell& cell_at(const Row& row, size_t column); // an empty one where the row has none

// Value of a cell as a number for sorting; -inf where it is empty, 0 for text.
double sort_value(const Cell& cell);

// The same figure as an estimate; what is none stays as it is.
Cell estimate_of(const Cell& cell);

} // namespace gpusnoop
