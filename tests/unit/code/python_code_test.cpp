// SPDX-License-Identifier: Apache-2.0
#include "code/python_code.hpp"

#include <catch2/catch_test_macros.hpp>
#include <charconv>
#include <cstring>
#include <map>
#include <sstream>
#include <string_view>

using namespace gpusnoop;

namespace {

python_code named(std::string_view name, uint8_t kind)
{
    python_code code{};
    code.first_line = 10;
    code.file_kind = 1;
    code.file_bytes = 5;
    memcpy(code.file, "a/b.p", 5);
    code.name_kind = kind;
    code.name_bytes = static_cast<uint32_t>(name.size());
    memcpy(code.name, name.data(), std::min<size_t>(name.size(), sizeof(code.name)));
    return code;
}

std::vector<uint8_t> record_of(const python_code& code, std::span<const uint8_t> table = {})
{
    std::vector<uint8_t> record(sizeof(code));
    memcpy(record.data(), &code, sizeof(code));
    for (const uint8_t byte : table)
        record.push_back(byte);
    return record;
}

// Line tables of one function, compiled by each version of Python. The function has large and backward steps between
// lines, exception handlers and a lambda. Expected lines come from dis and co_lines() of that version: FIRST_BYTE:LINE,
// with "-" if there is no line.
struct Compiled {
    unsigned minor;
    int64_t bytes;          // length of the code
    std::string_view table; // in hex
    std::string_view lines;
};

const Compiled compiled[] = {
    {8, 98, "0002020106ff04020c0102010e0110011a7f000e0c0202ff",
     "0:3 2:4 8:3 12:5 24:6 26:7 40:8 56:9 82:150 94:152 96:151"},
    {9, 100, "0002020106ff04020c0102010e010e011e7f000e0c0202ff",
     "0:3 2:4 8:3 12:5 24:6 26:7 40:8 54:9 84:150 96:152 98:151"},
    {10, 86, "0202060104ff0c0202010e010e010601088002ff007f0c0f020202ff",
     "0:3 2:4 8:3 12:5 24:6 26:7 40:8 54:9 60:- 68:8 70:150 82:152 84:151"},
    {11, 176,
     "f88000e0090ad8090a8811883189148c14f00301090f8041e50d12903189588c58f000040523f0000405238801f002030923d80c0d8f"
     "488a489051894b8c4b884b884bf8dd0f19f000010923f000010923f000010923dd121ba011d00c22f8f8f8f8f003010923f8f8f8f05c"
     "040009128809880988098041e00809f003020506",
     "0:- 2:1 4:3 6:4 26:3 30:5 64:6 66:7 110:- 112:8 130:9 146:- 154:8 156:- 162:150 172:152 174:151"},
    {12, 154,
     "f88000e0090ad9090a88318b14f00301090f8041e40d1290318b58f2000405238801f002030923d80c0d8f48894890518d4bf0050405"
     "23f362040009128041e00809f003020506f8f45f0400101af200010923dc121ba011d00c22fbf003010923fa",
     "0:- 2:1 4:3 6:4 20:3 24:5 52:6 54:7 90:5 92:150 102:152 104:151 106:- 108:8 124:9 138:- 146:8 148:-"},
    {13, 162,
     "f88000e0090ad9090a88318b14f00301090f8041e40d1290318e588801f002030923d80c0d8f48894890518e4bf105000e16f4620400"
     "09128041e00809f003020506f8f45f0400101af300010923dc121ba011d00c22fbf003010923fa",
     "0:- 2:1 4:3 6:4 20:3 24:5 52:6 54:7 92:5 96:150 108:152 110:151 112:- 114:8 132:9 146:- 154:8 156:-"},
};

std::vector<uint8_t> from_hex(std::string_view text)
{
    std::vector<uint8_t> bytes(text.size() / 2);
    for (size_t i = 0; i < bytes.size(); i++)
        std::from_chars(&text[2 * i], &text[2 * i] + 2, bytes[i], 16);
    return bytes;
}

} // namespace

TEST_CASE("names with one, two or four bytes per character are converted to UTF-8")
{
    const auto function = [](std::string_view name, uint8_t kind) {
        return read_python_code(record_of(named(name, kind)))->function;
    };
    CHECK(function("forward", 1) == "forward");
    CHECK(function("gr\xf6\xdf\x65", 1) == "größe");
    CHECK(function(std::string_view("\x20\x8a\x01\x30", 4), 2) == "訠、");
    CHECK(function(std::string_view("\x00\xf6\x01\x00", 4), 4) == "\U0001f600");
    CHECK(function("abc", 3).empty()); // an unknown kind
    CHECK(function("ab", 4).empty());  // an incomplete character
}

TEST_CASE("a name that is too long keeps its end")
{
    python_code code = named(std::string(PYTHON_TEXT_MAX, 'x'), 1);
    code.name_bytes = 1000;
    CHECK(read_python_code(record_of(code))->function == "..." + std::string(PYTHON_TEXT_MAX, 'x'));
}

TEST_CASE("unreadable parts stay empty")
{
    python_code code = named("f", 1);
    code.file_bytes = ~0U;
    code.name_bytes = ~0U;
    code.table_bytes = ~0U;
    const auto read = read_python_code(record_of(code));
    CHECK(read->file.empty());
    CHECK(read->function == "?");
    CHECK_FALSE(read->lines);
    CHECK(line_of(*read, {}, {}) == std::nullopt);
    CHECK_FALSE(read_python_code(std::vector<uint8_t>(sizeof(code) - 1)));
}

TEST_CASE("an instruction is given by its offset in the bytecode, or by its address")
{
    const std::vector<uint8_t> steps = {0x00, 0x02, 0x06, 0x01}; // 3.8: +2 lines at offset 0, +1 at offset 6
    python_code code = named("f", 1);
    code.table_bytes = 4;
    const auto read = *read_python_code(record_of(code, steps));
    python_stack stack{};
    stack.minor = 8;
    stack.instruction_bytes = 4;
    CHECK(line_of(read, stack, {.code = 0x1000, .instruction = 4, .check = 0}) == 12);
    CHECK(line_of(read, stack, {.code = 0x1000, .instruction = 6, .check = 0}) == 13);
    CHECK(line_of(read, stack, {.code = 0x1000, .instruction = 0xffffffff, .check = 0}) == 10);
    stack.instruction_bytes = 8;
    stack.first_instruction = 0x20;
    CHECK(line_of(read, stack, {.code = 0x1000 | PYTHON_FROM_C, .instruction = 0x1026, .check = 0}) == 13);
}

TEST_CASE("each instruction has the line that CPython reports")
{
    for (const Compiled& one : compiled) {
        const std::vector<uint8_t> bytes = from_hex(one.table);
        const LineTable table{.minor = one.minor, .first_line = 1, .bytes = bytes};
        std::map<int64_t, std::string> lines;
        std::istringstream text{std::string(one.lines)};
        for (std::string pair; text >> pair;)
            lines[std::stoi(pair)] = pair.substr(pair.find(':') + 1);
        for (int64_t offset = 0; offset < one.bytes; offset += 2) {
            CAPTURE(one.minor, offset);
            const auto found = line_at(table, offset);
            CHECK((found ? std::to_string(*found) : "-") == std::prev(lines.upper_bound(offset))->second);
        }
    }
}

TEST_CASE("code is at its first line before its first instruction, and has no line beyond the table")
{
    for (const unsigned minor : {8U, 10U, 11U, 14U})
        CHECK(line_at({.minor = minor, .first_line = 7, .bytes = {}}, -8) == 7);
    const std::vector<uint8_t> short_table = {0xd0, 0x09, 0x0a}; // line + 0, one instruction
    CHECK(line_at({.minor = 11, .first_line = 7, .bytes = short_table}, 0) == 7);
    CHECK(line_at({.minor = 11, .first_line = 7, .bytes = short_table}, 2) == std::nullopt);
    CHECK(line_at({.minor = 10, .first_line = 7, .bytes = {}}, 0) == std::nullopt);
}

TEST_CASE("a malformed line table is not read beyond its end")
{
    const std::vector<uint8_t> endless(1000, 0xf7); // long entries with a number that never ends
    CHECK(line_at({.minor = 13, .first_line = 1, .bytes = endless}, 1 << 20) == std::nullopt);
    const std::vector<uint8_t> far = {0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f};
    line_at({.minor = 13, .first_line = INT64_MAX, .bytes = far}, 0); // must not crash; any result is accepted
}
