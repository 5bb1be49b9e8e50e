// SPDX-License-Identifier: Apache-2.0
#include "code/python_code.hpp"

#include "base/text.hpp"
#include "code/python_line_table.hpp"

#include <algorithm>
#include <cstring>

namespace gpusnoop {
namespace {

// A text of Python has 1, 2 or 4 bytes for each character. Surrogates (of paths that are no UTF-8) stay what they are,
// which nobody takes for a character.
std::string text_of(const char* bytes, uint32_t size, uint8_t kind, bool& readable)
{
    std::string text;
    readable = size != ~0U && (kind == 1 || kind == 2 || kind == 4);
    if (!readable)
        return text;
    const uint32_t there = std::min<uint32_t>(size, PYTHON_TEXT_MAX);
    if (there < size)
        text = "...";
    for (uint32_t at = 0; at + kind <= there; at += kind) {
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

} // namespace gpusnoop
