// SPDX-License-Identifier: Apache-2.0
// Files that any process can map, and the memory of processes.
#include "attach/placement.hpp"
#include "base/error.hpp"
#include "code/call_frames.hpp"
#include "code/elf_image.hpp"
#include "code/python_code.hpp"
#include "code/python_interpreter.hpp"
#include "code/python_layout.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <span>

using namespace gpusnoop;

namespace {

constexpr std::string_view names[] = {"launch_all", "exported", "_Z8exportedv", "__cudaRegisterFunction", "", "_init"};

bool lies_in(const Elf64_Phdr& segment, uint64_t file_offset)
{
    return segment.p_type == PT_LOAD && file_offset >= segment.p_offset &&
           file_offset - segment.p_offset < segment.p_filesz;
}

void check(const Elf& elf, const Symbol& function)
{
    const auto holds = [&](const Elf64_Phdr& s) { return (s.p_flags & PF_X) && lies_in(s, function.file_offset); };
    expect(std::ranges::any_of(elf.segments(), holds), "functions lie in executable segments");
    expect(!elf.bytes(function.file_offset, 32).empty(), "a function has code");
    const auto found = elf.symbol_at(function.address);
    expect(!found || found->address == function.address, "the symbol found has the address that was looked up");
}

} // namespace

// ELF files: processes can map any file.
TARGET(elf)
try {
    const Elf elf(file_with(input));
    expect(elf.file_size() == input.size(), "the file size is right");
    expect(elf.build_id().size() <= 128 && elf.soname().size() <= 64 << 10, "names are bounded");
    elf.has_section(".nvFatBinSegment");
    for (const Symbol& function : elf.functions(names))
        check(elf, function);
    for (const Part& part : elf.code())
        expect(part.size <= input.size() && part.file_offset <= input.size() - part.size, "code lies in the file");
    const ElfImage image(elf);
    for (const std::vector<uint64_t>& slots : image.slots(names))
        image.pointers(slots);
    for (const Elf64_Phdr& s : elf.segments())
        expect(image.string_at(s.p_vaddr, 64).size() <= 64, "strings are bounded");
} catch (const Error&) { // most inputs are not ELF files
}

// Unwinding rules read from an arbitrary file, for arbitrary addresses.
TARGET(call_frames)
try {
    const Elf elf(file_with(input));
    const CallFrames frames(elf);
    for (uint64_t address = 0; address < 2 * input.size() && address < 1 << 16; address += 1 + input.size() / 64) {
        frames.function_start(address);
        const auto rule = frames.rule(address);
        expect(!rule || rule->base_register < FrameRegisters::count, "base register is valid");
    }
} catch (const Error&) { // most inputs are not ELF files
}

// Placement of a probe in the code of any function.
TARGET(instructions)
{
    const std::string exact(input.substr(0, 32));
    const Placement placement = place({reinterpret_cast<const uint8_t*>(exact.data()), exact.size()});
    expect(placement.delta <= 4 * 15, "a probe is near the entry");
    expect(placement.delta == 0 || placement.delta < exact.size(), "a probe is within the code");
    expect(placement.delta == 0 || placement.emulated, "a probe only moves to an emulated instruction");
}

namespace {

std::span<const uint8_t> bytes_of(std::string_view text)
{
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

} // namespace

// CPython's data in a process's memory: debug offsets, thread lists, and code objects with their line tables.
TARGET(python)
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
