// SPDX-License-Identifier: Apache-2.0
// A line of JSON as tools print it: keys with texts, numbers, the three of a grid or a list of texts. What is nested
// otherwise is left out.
#pragma once

#include "base/fd.hpp"
#include "output/compression.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gpusnoop {

class Record {
public:
    // nullopt where the text is no such object, or is larger or nests deeper than what any tool prints.
    static std::optional<Record> parse(std::string_view line);

    using Numbers = std::vector<double>;
    using Texts = std::vector<std::string>;
    using Value = std::variant<double, std::string, Numbers, Texts>;

    // One that nobody has printed.
    explicit Record(std::vector<std::pair<std::string, Value>> values = {}) : values_(std::move(values)) {}

    const Value* value(std::string_view key) const; // null where there is no such key
    // Empty, or nullopt, where there is no such key, or it is of another kind.
    std::string_view text(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<double> product(std::string_view key) const; // of [x,y,z]
    const Texts* texts(std::string_view key) const;            // null where it has no such list

    std::string_view type() const { return text("type"); }

    const std::vector<std::pair<std::string, Value>>& all() const { return values_; }

private:
    template<class T>
    const T* find(std::string_view key) const;

    std::vector<std::pair<std::string, Value>> values_;
};

// What a line says that was lost, of all kinds together; 0 where it is about something else.
uint64_t lost_in(const Record& record);

// Nanoseconds since the epoch of "2026-01-01T10:00:00.000000+00:00".
std::optional<double> wall_ns_of(std::string_view time);

// The lines of a file that somebody else may have made: plain or packed by gzip or zstd, cut off or whole, of any size.

// What of a file is not among the lines.
struct Damage {
    uint64_t bytes = 0;      // packed ones that cannot be unpacked
    uint64_t long_lines = 0; // longer than any that is recorded
    bool cut_off = false;    // it ends within a line, or within what is packed
};

class RecordedLines {
public:
    static constexpr size_t line_max = 1 << 20; // bytes

    // Throws Error where the file cannot be read.
    explicit RecordedLines(std::string path);

    // The next whole line, without its end: it stays until the next call. nullopt after the last one. Throws Error.
    std::optional<std::string_view> next();

    const Damage& damage() const { return damage_; }

private:
    bool read_more();
    void unpack();

    std::string path_;
    Fd file_;
    std::string raw_; // packed, and not unpacked yet
    std::string text_;
    size_t begin_ = 0;                           // of the line in text_
    bool skipping_ = false;                      // what is left of a line that is too long
    bool first_ = true;                          // nothing was read
    bool ended_ = false;                         // all of the file was read
    std::unique_ptr<Decompressor> decompressor_; // null: plain
    bool in_member_ = false;                     // some of one has been unpacked
    Damage damage_;
};

} // namespace gpusnoop
