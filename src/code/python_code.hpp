// SPDX-License-Identifier: Apache-2.0
// Parser of Python code objects (names and line tables) that BPF programs have copied from a process (python_code). The
// data is not trusted.
#pragma once

#include "bpf/shared/python.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct PythonCode {
    std::string file; // co_filename in UTF-8; if it is long, "..." replaces its beginning
    std::string function;
    int64_t first_line = 0;
    std::optional<std::vector<uint8_t>> lines; // the line table; nullopt if it could not be read
};

// Returns the base name of co_filename. Special names such as "<string>" are returned unchanged.
std::string_view code_file_name(std::string_view file);

// Parses a record. Returns nullopt if it is truncated.
std::optional<PythonCode> read_python_code(std::span<const uint8_t> record);

// Returns the current line of a frame. nullopt if the frame has no line or its line is unknown.
std::optional<int64_t> line_of(const PythonCode& code, const python_stack& stack, const python_frame& frame);

// A code object's line table (CPython's Objects/lnotab_notes.txt, locations.md).
struct LineTable {
    unsigned minor = 0; // Python 3.minor, which determines the format
    int64_t first_line = 0;
    std::span<const uint8_t> bytes;
};

// Returns the line of the instruction at this byte offset. A negative offset means that no instruction has run yet, and
// gives the first line. nullopt if the instruction has no line or is past the end of the table.
std::optional<int64_t> line_at(const LineTable& table, int64_t offset);

} // namespace gpusnoop
