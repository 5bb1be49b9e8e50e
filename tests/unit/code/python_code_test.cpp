// SPDX-License-Identifier: Apache-2.0
#include "code/python_code.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
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

} // namespace

TEST_CASE("names with one, two or four bytes per character are converted to UTF-8")
{
    CHECK(read_python_code(record_of(named("forward", 1)))->function == "forward");
    CHECK(read_python_code(record_of(named("gr\xf6\xdf"
                                           "e",
                                           1)))
              ->function == "größe");
    CHECK(read_python_code(record_of(named(std::string_view("\x20\x8a\x01\x30", 4), 2)))->function == "訠、");
    CHECK(read_python_code(record_of(named(std::string_view("\x00\xf6\x01\x00", 4), 4)))->function == "\U0001f600");
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

TEST_CASE("a name with an unknown kind or an incomplete character is handled")
{
    CHECK(read_python_code(record_of(named("abc", 3)))->function.empty());
    CHECK(read_python_code(record_of(named("ab", 4)))->function.empty());
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
