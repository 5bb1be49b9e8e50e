// SPDX-License-Identifier: Apache-2.0
// The lines of a file that somebody else may have made: plain or packed by gzip or zstd, cut off or whole, of any size.
#pragma once

#include "base/fd.hpp"
#include "output/unpacker.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

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
    size_t begin_ = 0;                   // of the line in text_
    bool skipping_ = false;              // what is left of a line that is too long
    bool first_ = true;                  // nothing was read
    bool ended_ = false;                 // all of the file was read
    std::unique_ptr<Unpacker> unpacker_; // null: plain
    bool in_member_ = false;             // some of one has been unpacked
    Damage damage_;
};

} // namespace gpusnoop
