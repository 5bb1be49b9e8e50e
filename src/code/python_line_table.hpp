// SPDX-License-Identifier: Apache-2.0
// The line of an instruction, by the table that code has of them (CPython's Objects/lnotab_notes.txt, locations.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace gpusnoop {

struct LineTable {
    unsigned minor = 0; // of Python 3.minor, which decides the form
    int64_t first_line = 0;
    std::span<const uint8_t> bytes;
};

// offset: of the instruction, in bytes; negative: before the first one, which has the first line. nullopt where the
// table says that there is no line, or ends before.
std::optional<int64_t> line_at(const LineTable& table, int64_t offset);

} // namespace gpusnoop
