// SPDX-License-Identifier: Apache-2.0
#include "code/python_code.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstring>

namespace gpusnoop {

namespace {

// Converts a Python string with 1, 2 or 4 bytes per character to UTF-8. In a path, surrogates represent bytes that are
// not UTF-8. Surrogates are encoded like other characters, so such a path becomes invalid UTF-8.
std::string text_of(const char* bytes, uint32_t size, uint8_t kind, bool& readable)
{
    std::string text;
    readable = size != ~0U && (kind == 1 || kind == 2 || kind == 4);
    if (!readable)
        return text;
    const uint32_t copied = std::min<uint32_t>(size, PYTHON_TEXT_MAX);
    if (copied < size)
        text = "...";
    for (uint32_t at = 0; at + kind <= copied; at += kind) {
        uint32_t code = 0;
        memcpy(&code, bytes + at, kind);
        append_utf8(text, code);
    }
    return text;
}

} // namespace

std::string_view code_file_name(std::string_view file)
{
    return file.starts_with('<') ? file : base_name(file);
}

std::optional<PythonCode> read_python_code(std::span<const uint8_t> record)
{
    python_code head{};
    if (record.size() < sizeof(head))
        return std::nullopt;
    memcpy(&head, record.data(), sizeof(head));
    PythonCode code{.file = {}, .function = {}, .first_line = static_cast<int32_t>(head.first_line), .lines = {}};
    bool file = false, name = false;
    code.file = text_of(head.file, head.file_bytes, head.file_kind, file);
    code.function = text_of(head.name, head.name_bytes, head.name_kind, name);
    if (!file && !name)
        code.function = "?";
    if (head.table_bytes != ~0U) {
        const auto table = record.subspan(sizeof(head));
        const auto known = table.first(std::min<size_t>(head.table_bytes, table.size()));
        code.lines.emplace(known.begin(), known.end());
    }
    return code;
}

std::optional<int64_t> line_of(const PythonCode& code, const python_stack& stack, const python_frame& frame)
{
    if (!code.lines)
        return std::nullopt;
    int64_t offset = 0;
    if (stack.instruction_bytes == sizeof(uint64_t))
        offset = static_cast<int64_t>(frame.instruction - (frame.code & ~PYTHON_FROM_C) - stack.first_instruction);
    else
        offset = int64_t{static_cast<int32_t>(frame.instruction)} * (stack.minor == 10 ? 2 : 1);
    return line_at({.minor = stack.minor, .first_line = code.first_line, .bytes = *code.lines}, offset);
}

namespace {

// 3.8 and 3.9: each pair is an increment of the byte offset and an increment of the line. The new line applies from the
// new offset on.
std::optional<int64_t> line_of_steps(const LineTable& table, int64_t offset)
{
    int64_t at = 0, line = table.first_line;
    for (size_t i = 0; i + 1 < table.bytes.size(); i += 2) {
        at += table.bytes[i];
        if (at > offset)
            break;
        line += static_cast<int8_t>(table.bytes[i + 1]);
    }
    return line;
}

// 3.10 (PEP 626): each pair is a length in bytes and the line increment for these bytes. An increment of -128 means
// that these bytes have no line.
std::optional<int64_t> line_of_ranges(const LineTable& table, int64_t offset)
{
    int64_t end = 0, line = table.first_line;
    for (size_t i = 0; i + 1 < table.bytes.size(); i += 2) {
        const auto step = static_cast<int8_t>(table.bytes[i + 1]);
        end += table.bytes[i];
        if (step != -128)
            line += step;
        if (offset < end)
            return step == -128 ? std::nullopt : std::optional(line);
    }
    return std::nullopt;
}

// Variable-length integers: 6 bits per byte, least significant first; bit 6 marks a continuation.
class VarintReader {
public:
    explicit VarintReader(std::span<const uint8_t> bytes) : rest_(bytes) {}

    bool done() const { return rest_.empty(); }
    uint8_t byte()
    {
        if (rest_.empty())
            return 0;
        const uint8_t first = rest_.front();
        rest_ = rest_.subspan(1);
        return first;
    }
    uint64_t number()
    {
        uint64_t value = 0;
        uint8_t part = 0;
        unsigned shift = 0;
        do {
            part = byte();
            if (shift < 64)
                value |= static_cast<uint64_t>(part & 63) << shift;
            shift += 6;
        } while (part & 64);
        return value;
    }
    int64_t signed_number()
    {
        const uint64_t value = number();
        const auto size = static_cast<int64_t>(value >> 1);
        return value & 1 ? -size : size;
    }

private:
    std::span<const uint8_t> rest_;
};

// 3.11 and later (PEP 657): each entry describes up to eight code units, by a line increment and columns. The columns
// are skipped.
std::optional<int64_t> line_of_locations(const LineTable& table, int64_t offset)
{
    enum Kind : uint8_t { one_line_first = 10, one_line_last = 12, no_columns = 13, long_form = 14, no_line = 15 };
    VarintReader entries(table.bytes);
    // Unsigned, because a hostile table can make the sum overflow.
    uint64_t line = static_cast<uint64_t>(table.first_line);
    for (int64_t end = 0; !entries.done();) {
        const uint8_t head = entries.byte();
        const unsigned kind = head >> 3 & 15;
        end += ((head & 7) + 1) * 2;
        if (kind >= one_line_first && kind <= one_line_last) {
            line += kind - one_line_first;
            entries.byte();
            entries.byte();
        } else if (kind == no_columns) {
            line += static_cast<uint64_t>(entries.signed_number());
        } else if (kind == long_form) {
            line += static_cast<uint64_t>(entries.signed_number());
            for (int skipped = 0; skipped < 3; skipped++)
                entries.number();
        } else if (kind < one_line_first) {
            entries.byte();
        }
        if (offset < end)
            return kind == no_line ? std::nullopt : std::optional(static_cast<int64_t>(line));
    }
    return std::nullopt;
}

} // namespace

std::optional<int64_t> line_at(const LineTable& table, int64_t offset)
{
    if (offset < 0)
        return table.first_line;
    return table.minor < 10    ? line_of_steps(table, offset)
           : table.minor == 10 ? line_of_ranges(table, offset)
                               : line_of_locations(table, offset);
}

} // namespace gpusnoop
