// SPDX-License-Identifier: Apache-2.0
// ELF files: processes can map any file.
#include "base/error.hpp"
#include "code/elf_image.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>

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

void fuzz(std::string_view input)
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
