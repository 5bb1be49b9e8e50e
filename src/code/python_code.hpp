// SPDX-License-Identifier: Apache-2.0
// Code of Python, as the kernel side has copied it from a process (python_code): what it is called, and its lines.
// Nothing in it is to be believed.
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
    std::string file; // as Python has it, in UTF-8 where it is text at all; its end where it is long
    std::string function;
    int64_t first_line = 0;
    std::optional<std::vector<uint8_t>> lines; // none: they could not be read
};

// Of a file of code as Python names it: without its folder, or "<string>" as it is.
std::string_view code_file_name(std::string_view file);

// Of the bytes of a record, which may end before they should: nullopt where they do.
std::optional<PythonCode> read_python_code(std::span<const uint8_t> record);

// nullopt: it has none, or it is not known.
std::optional<int64_t> line_of(const PythonCode& code, const python_stack& stack, const python_frame& frame);

// The line of an instruction, by the table that code has of them (CPython's Objects/lnotab_notes.txt, locations.md).
struct LineTable {
    unsigned minor = 0; // of Python 3.minor, which decides the form
    int64_t first_line = 0;
    std::span<const uint8_t> bytes;
};

// offset: of the instruction, in bytes; negative: before the first one, which has the first line. nullopt where the
// table says that there is no line, or ends before.
std::optional<int64_t> line_at(const LineTable& table, int64_t offset);

} // namespace gpusnoop
