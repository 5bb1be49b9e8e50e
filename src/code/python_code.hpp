// SPDX-License-Identifier: Apache-2.0
// Python code objects that BPF programs have copied from a process (python_code): names and line tables. The data is
// not trusted.
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
    std::string file; // co_filename in UTF-8, with the beginning replaced by "..." if it is long
    std::string function;
    int64_t first_line = 0;
    std::optional<std::vector<uint8_t>> lines; // the line table; nullopt if it could not be read
};

// The base name of co_filename; special names such as "<string>" are unchanged.
std::string_view code_file_name(std::string_view file);

// Parses a record. nullopt if it is truncated.
std::optional<PythonCode> read_python_code(std::span<const uint8_t> record);

// The current line of a frame. nullopt if the frame has no line, or its line is unknown.
std::optional<int64_t> line_of(const PythonCode& code, const python_stack& stack, const python_frame& frame);

// A code object's line table (CPython's Objects/lnotab_notes.txt, locations.md).
struct LineTable {
    unsigned minor = 0; // Python 3.minor, which determines the format
    int64_t first_line = 0;
    std::span<const uint8_t> bytes;
};

// Line of the instruction at this byte offset. A negative offset is before the first instruction and has the first
// line. nullopt if the instruction has no line, or is beyond the table.
std::optional<int64_t> line_at(const LineTable& table, int64_t offset);

} // namespace gpusnoop
