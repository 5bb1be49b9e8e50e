// SPDX-License-Identifier: Apache-2.0
// CPython's data in a process's memory: debug offsets, thread lists, and code objects with their line tables.
#include "code/python_code.hpp"
#include "code/python_interpreter.hpp"
#include "code/python_layout.hpp"
#include "tests/fuzz/target.hpp"

#include <span>

using namespace gpusnoop;

namespace {

std::span<const uint8_t> bytes_of(std::string_view text)
{
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

} // namespace

void fuzz(std::string_view input)
{
    Parts parts(input);
    const auto minor = static_cast<unsigned>(parts.number<uint8_t>() % 8 + PythonVersion::first);
    const auto offset = parts.number<int16_t>();
    const auto instruction = parts.number<uint64_t>();
    const std::string_view rest = parts.text(input.size());

    line_at({.minor = minor, .first_line = offset, .bytes = bytes_of(rest)}, offset);
    if (const auto offsets = debug_offsets(bytes_of(rest)); offsets && offsets->version.layout.minor)
        expect(offsets->version.layout.code != PYTHON_NONE, "fields that all versions have are set");
    if (const auto code = read_python_code(bytes_of(rest))) {
        expect(code->file.size() <= 3 + 2 * PYTHON_TEXT_MAX, "the path is no longer than the input");
        python_stack stack{};
        stack.minor = static_cast<uint8_t>(minor);
        stack.instruction_bytes = minor < 11 ? 4 : 8;
        line_of(*code, stack, {.code = 0, .instruction = instruction, .check = 0});
    }
    // The memory repeats the input, so that lists may be circular.
    if (const auto version = python_version(minor); version && rest.size() >= sizeof(uint64_t))
        for (const ThreadStorage* const storage : {&storage_on_x86_64, &storage_on_arm64})
            find_state_slot(*version, instruction, {bytes_of(rest), instruction}, *storage, 0,
                            [rest](uint64_t address, void* to, size_t size) {
                                for (size_t i = 0; i < size; i++)
                                    static_cast<char*>(to)[i] = rest[(address + i) % rest.size()];
                                return true;
                            });
}
