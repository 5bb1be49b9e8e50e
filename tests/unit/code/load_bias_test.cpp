// SPDX-License-Identifier: Apache-2.0
#include "code/elf_image.hpp"

#include "base/machine.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <utility>
#include <vector>

using gpusnoop::load_bias;
using gpusnoop::Mapping;

namespace {

const uint64_t page = gpusnoop::machine::page_size();
const uint64_t base = 1000 * page; // load address of the files

enum Permission : bool { data = false, code = true };

// The loader's mapping of a segment: whole pages.
Mapping mapped(const Elf64_Phdr& s, uint64_t bias, Permission permission)
{
    const uint64_t first = s.p_vaddr / page * page, end = (s.p_vaddr + s.p_filesz + page - 1) / page * page;
    return {.start = bias + first,
            .end = bias + end,
            .file_offset = s.p_offset / page * page,
            .executable = permission == code,
            .path = {}};
}

Mapping mapped(const Elf64_Phdr& s, uint64_t bias = base)
{
    return mapped(s, bias, s.p_flags & PF_X ? code : data);
}

// Pages [first, end) of a mapping, as if mprotect() had split them off.
Mapping part(Mapping whole, uint64_t first, uint64_t end)
{
    whole.file_offset += first * page;
    whole.end = whole.start + end * page;
    whole.start += first * page;
    return whole;
}

Elf64_Phdr segment(uint32_t flags, uint64_t offset, uint64_t address, uint64_t size, uint64_t align = page)
{
    return {PT_LOAD, flags, offset, address, address, size, size, align};
}

// A layout as lld creates it. In the file, segments follow each other without padding. In memory, each segment is one
// page farther from its file offset than the segment before.
struct Unpadded {
    Elf64_Phdr rodata = segment(PF_R, 0, 0, 9 * page + 0x618);
    Elf64_Phdr text = segment(PF_R | PF_X, 9 * page + 0x620, 10 * page + 0x620, 20 * page);
    Elf64_Phdr relro = segment(PF_R | PF_W, 29 * page + 0x620, 31 * page + 0x620, page);
    Elf64_Phdr variables = segment(PF_R | PF_W, 30 * page + 0x620, 33 * page + 0x620, 3 * page);
    std::vector<Elf64_Phdr> all{{PT_PHDR, PF_R, 64, 64, 64, 512, 512, 8}, rodata, text, relro, variables};
};

void all_of(const std::vector<Elf64_Phdr>& segments, const Mapping& mapping, uint64_t bias)
{
    for (uint64_t address = mapping.start; address < mapping.end; address += 0x10)
        if (load_bias(segments, mapping, address) != bias)
            FAIL("at " << address - mapping.start << " of the mapping at file offset " << mapping.file_offset);
}

} // namespace

TEST_CASE("each mapping of an unpadded file has the bias of its own segment", "[elf][pages]")
{
    const Unpadded file;
    all_of(file.all, mapped(file.rodata), base);
    all_of(file.all, mapped(file.text), base);
    const Mapping relro = mapped(file.relro), variables = mapped(file.variables);
    all_of(file.all, part(relro, 0, 1), base);
    all_of(file.all, part(variables, 1, 4), base);
    // One page of the file contains the end of relro and the start of variables. Both segments have the same
    // permissions, so the address within the page decides.
    const Mapping first_of_variables = part(variables, 0, 1);
    CHECK(load_bias(file.all, first_of_variables, base + file.variables.p_vaddr) == base);
    const Mapping last_of_relro = part(relro, 1, 2);
    CHECK(load_bias(file.all, last_of_relro, base + file.relro.p_vaddr + file.relro.p_filesz - 1) == base);
}

TEST_CASE("parts of a segment that mprotect() has split off have the segment's bias", "[elf][pages]")
{
    const Unpadded file;
    const Mapping text = mapped(file.text);
    for (const auto& [first, end] :
         std::vector<std::pair<uint64_t, uint64_t>>{{0, 1}, {0, 20}, {1, 2}, {5, 21}, {20, 21}})
        all_of(file.all, part(text, first, end), base);
    Mapping writable = part(text, 3, 4); // as for text relocations or debugger breakpoints
    all_of(file.all, writable, base);
    writable.executable = false;
    all_of(file.all, writable, base);
    Mapping executed = part(mapped(file.variables), 1, 3);
    executed.executable = true;
    all_of(file.all, executed, base);
}

TEST_CASE("a read-only segment that READ_IMPLIES_EXEC makes executable keeps its bias", "[elf][pages]")
{
    const Unpadded file;
    all_of(file.all, mapped(file.rodata, base, code), base);
    all_of(file.all, mapped(file.text), base);
}

TEST_CASE("a text segment smaller than a page is distinguished from other segments on that page", "[elf][pages]")
{
    const std::vector<Elf64_Phdr> all{segment(PF_R, 0, 0, 0x400), segment(PF_R | PF_X, 0x400, page + 0x400, 0x200),
                                      segment(PF_R | PF_W, 0x600, 2 * page + 0x600, 0x100)};
    all_of(all, mapped(all[1]), base);
    for (const Elf64_Phdr& s : all)
        CHECK(load_bias(all, mapped(s), base + s.p_vaddr) == base);
}

TEST_CASE("two text segments on one page are distinguished by their extent", "[elf][pages]")
{
    const std::vector<Elf64_Phdr> all{segment(PF_R | PF_X, 0, 0, 3 * page + 0x800),
                                      segment(PF_R | PF_X, 3 * page + 0x800, 4 * page + 0x800, 3 * page)};
    all_of(all, mapped(all[0]), base);
    all_of(all, mapped(all[1]), base);
}

TEST_CASE("the bias is right for large alignments, prelinked files and fixed addresses", "[elf][pages]")
{
    for (const uint64_t align : {uint64_t{0x10000}, uint64_t{0x200000}}) {
        const uint64_t unit = std::max(align, page);
        for (const uint64_t at : {uint64_t{0}, 1000 * unit}) { // prelinked
            const std::vector<Elf64_Phdr> all{
                segment(PF_R, 0, at, 0x4618, unit), segment(PF_R | PF_X, 0x4620, at + unit + 0x4620, 3 * unit, unit),
                segment(PF_R | PF_W, 0x4620 + 3 * unit, at + 5 * unit + 0x4620, unit, unit)};
            for (const Elf64_Phdr& s : all)
                for (const uint64_t bias : {uint64_t{0}, 50 * unit, 0 - at}) // 0: a program that is not relocated
                    CHECK(load_bias(all, mapped(s, bias), bias + s.p_vaddr) == bias);
        }
    }
}

TEST_CASE("a mapping that the loader left between two segments has the bias of the first one", "[elf][pages]")
{
    const std::vector<Elf64_Phdr> all{segment(PF_R | PF_X, 0, 0, 2 * page),
                                      segment(PF_R | PF_W, 2 * page, 0x200000, page)};
    Mapping text = mapped(all[0]);
    text.end = base + 0x200000; // musl maps the whole library as its first segment, then the others over it
    CHECK(load_bias(all, text, base + page) == base);
}

TEST_CASE("an address outside all segments has no bias", "[elf][pages]")
{
    const Unpadded file;
    Mapping beyond = mapped(file.variables);
    beyond.end += 5 * page;
    CHECK(load_bias(file.all, beyond, beyond.end - 6 * page) == base);
    CHECK_FALSE(load_bias(file.all, beyond, beyond.end - 5 * page));
    CHECK_FALSE(load_bias({}, beyond, beyond.start));
    const std::array hostile{segment(PF_R | PF_X, ~uint64_t{0}, 0, 1),
                             segment(PF_R | PF_X, ~uint64_t{0} - 1, 0, ~uint64_t{0}),
                             segment(PF_R | PF_X, 0, 0, ~uint64_t{0}), segment(PF_R | PF_X, 0, 0, 0)};
    CHECK_FALSE(load_bias(
        hostile, {.start = 0, .end = ~uint64_t{0}, .file_offset = ~uint64_t{0}, .executable = true, .path = {}}, 7));
}
