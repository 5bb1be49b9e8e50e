// SPDX-License-Identifier: Apache-2.0
// A JSON line printed by a tool. Values are texts, numbers, lists of numbers or lists of texts; other nested values are
// skipped.
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
    // Returns nullopt if the line is not a JSON object, or is larger or more deeply nested than any line that a tool
    // prints.
    static std::optional<Record> parse(std::string_view line);

    using Numbers = std::vector<double>;
    using Texts = std::vector<std::string>;
    using Value = std::variant<double, std::string, Numbers, Texts>;

    // Creates a record from values instead of a JSON line.
    explicit Record(std::vector<std::pair<std::string, Value>> values = {}) : values_(std::move(values)) {}

    const Value* value(std::string_view key) const; // null if there is no such key
    // The next functions return an empty text or nullopt if the key is missing or its value has another type.
    std::string_view text(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<double> product(std::string_view key) const; // x*y*z, if the value is a list [x,y,z]
    const Texts* texts(std::string_view key) const;            // null if the value is not a list of texts

    std::string_view type() const { return text("type"); }

    const std::vector<std::pair<std::string, Value>>& all() const { return values_; }

private:
    template<class T>
    const T* find(std::string_view key) const;

    std::vector<std::pair<std::string, Value>> values_;
};

// Sum of all losses in a "lost" record; 0 for other records.
uint64_t lost_in(const Record& record);

// Parses "2026-01-01T10:00:00.000000+00:00" to nanoseconds since the epoch.
std::optional<double> wall_ns_of(std::string_view time);

// Damage found in a file.
struct Damage {
    uint64_t bytes = 0;      // number of bytes that cannot be decompressed
    uint64_t long_lines = 0; // number of lines longer than line_max
    bool cut_off = false;    // the file ends within a line or a compressed member
};

// Reads the lines of an untrusted file of any size. The file may be compressed (gzip, zstd), and may be truncated.

class RecordedLines {
public:
    static constexpr size_t line_max = 1 << 20; // bytes

    // Throws Error if the file cannot be opened.
    explicit RecordedLines(std::string path);

    // Returns the next complete line without its newline, valid until the next call; nullopt at the end of the file.
    // Throws Error.
    std::optional<std::string_view> next();

    const Damage& damage() const { return damage_; }

private:
    bool read_more();
    void unpack();

    std::string path_;
    Fd file_;
    std::string raw_; // bytes that are not decompressed yet
    std::string text_;
    size_t begin_ = 0;                           // start of the current line in text_
    bool skipping_ = false;                      // skipping the rest of a line that is too long
    bool first_ = true;                          // nothing has been read yet
    bool ended_ = false;                         // the end of the file was reached
    std::unique_ptr<Decompressor> decompressor_; // null: not compressed
    bool in_member_ = false;                     // the current member is not complete yet
    Damage damage_;
};

} // namespace gpusnoop
