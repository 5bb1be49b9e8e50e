// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/code/elf_fixtures.hpp"

#include "code/decoder.hpp"
#include "tests/unit/base/error_of.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <random>

using namespace gpusnoop;
using namespace elf_fixtures;

namespace {

std::string refusal(Fd file)
{
    return error_of([&] { const Elf elf(std::move(file)); });
}

// Calls all methods and returns the number of functions found; -1 if the file is refused.
int exercise(Fd file)
{
    try {
        const Elf elf(std::move(file));
        const auto found = functions(elf, {"exported", "twice", "hidden", "only_local", "weak_alias", "chosen"});
        (void)elf.soname();
        (void)elf.build_id();
        (void)elf.has_section(".nv_fatbin");
        for (const Symbol& symbol : found) {
            (void)elf.symbol_at(symbol.address);
            (void)elf.bytes(symbol.file_offset, 16);
        }
        for (const uint64_t value : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x1139}, ~uint64_t{0}}) {
            (void)elf.symbol_at(value);
            (void)elf.bytes(value, 16);
        }
        return static_cast<int>(found.size());
    } catch (const Error&) {
        return -1;
    }
}

} // namespace

TEST_CASE("invalid files are refused with a reason", "[elf]")
{
    const auto changed = [](const std::function<void(Elf64_Ehdr&)>& change) {
        auto file = content("stripped.so");
        change(header(file));
        return refusal(memory_file(file));
    };
    CHECK(refusal(memory_file(Bytes{})) == "not an ELF file");
    CHECK(refusal(memory_file(Bytes(10000, '#'))) == "not an ELF file");
    for (const char* const path : {"/dev/null", "/proc/self/status", "/etc/passwd"})
        CHECK_FALSE(refusal(Fd(open(path, O_RDONLY | O_CLOEXEC))).empty());
    CHECK(refusal(memory_file(Bytes{0x7f, 'E', 'L', 'F'})) == "truncated ELF file");
    CHECK(refusal(Fd(open("/", O_RDONLY | O_CLOEXEC))) == "not a regular file");
    CHECK(refusal(Fd()).starts_with("cannot read ELF file: "));
    CHECK(refusal(Fd(open(fixtures().file("main.o").c_str(), O_RDONLY | O_CLOEXEC))) ==
          "ELF file is neither a program nor a shared library");
    CHECK(changed([](auto& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }).starts_with("32-bit ELF file; "));
    CHECK(changed([](auto& h) {
              h.e_machine = other_elf.number;
          }).starts_with(fmt::format("ELF file for another machine ({}); ", other_elf.name)));
    CHECK(changed([](auto& h) { h.e_machine = EM_RISCV; }).starts_with("ELF file for another machine (number 243); "));
    CHECK(changed([](auto& h) { h.e_shnum = 0; }).starts_with("malformed ELF file"));
    CHECK(changed([](auto& h) { h.e_phnum = PN_XNUM; }).starts_with("malformed ELF file"));
    CHECK(changed([](auto& h) { h.e_shoff = ~uint64_t{0}; }) == "truncated ELF file");
    CHECK(changed([](auto& h) { h.e_phoff = ~uint64_t{0}; }) == "truncated ELF file");
    CHECK(changed([](auto&) {}).empty());
}

TEST_CASE("a truncated file is refused or has no symbols", "[elf]")
{
    const auto file = content("lib.so");
    REQUIRE(exercise(memory_file(file)) > 0);
    for (size_t size = 0; size < file.size(); size += 64) {
        CAPTURE(size);
        CHECK(exercise(memory_file(std::span(file).first(size))) <= 0);
    }
}

TEST_CASE("a file that shrinks while it is read does no harm", "[elf]")
{
    const auto file = content("lib.so");
    const Fd fd = memory_file(file);
    const Elf elf(Fd(dup(fd.get())));
    REQUIRE(ftruncate(fd.get(), 100) == 0);
    CHECK(functions(elf, {"exported"}).empty());
    CHECK_FALSE(elf.symbol_at(0x1000));
    CHECK(elf.bytes(0, 200).size() == 100);
}

TEST_CASE("wrong values in header tables are harmless", "[elf]")
{
    constexpr int most = 14; // 7 functions in two tables
    constexpr uint64_t huge = uint64_t{1} << 40;
    const auto spoilt = [](const std::function<void(Bytes&)>& spoil, off_t size = 0) {
        auto file = content("lib.so");
        spoil(file);
        return exercise(memory_file(file, size));
    };
    // Sets fields of all entries of a table.
    const auto each = [&](auto table, off_t size, auto set) {
        return spoilt([&](Bytes& file) { std::ranges::for_each(table(file), set); }, size);
    };
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, huge, uint64_t{1} << 63, ~uint64_t{0}}) {
        CAPTURE(value);
        const auto word = static_cast<Elf64_Word>(value);
        for (const auto field : {&Elf64_Shdr::sh_offset, &Elf64_Shdr::sh_size, &Elf64_Shdr::sh_entsize,
                                 &Elf64_Shdr::sh_flags, &Elf64_Shdr::sh_addralign})
            for (const off_t size : {off_t{0}, off_t{4 * huge}}) // huge: a sparse file that contains all offsets
                CHECK(each(sections, size, [&](Elf64_Shdr& s) { s.*field = value; }) <= most);
        CHECK(each(sections, 0, [&](Elf64_Shdr& s) { s.sh_link = s.sh_info = s.sh_name = word; }) <= most);
        CHECK(each(segments, 0, [&](Elf64_Phdr& s) { s.p_vaddr = s.p_memsz = s.p_align = value; }) <= most);
        CHECK(each([](Bytes& file) { return entries<Elf64_Sym>(file, SHT_DYNSYM); }, 0,
                   [&](Elf64_Sym& s) { s.st_name = word; }) <= most);
        CHECK(each([](Bytes& file) { return entries<Elf64_Sym>(file, SHT_SYMTAB); }, 0,
                   [&](Elf64_Sym& s) { s.st_value = s.st_size = value; }) <= most);
        CHECK(each([](Bytes& file) { return entries<Elf64_Half>(file, SHT_GNU_versym); }, 0,
                   [&](Elf64_Half& index) { index = static_cast<Elf64_Half>(value); }) >= 5);
        CHECK(spoilt([&](Bytes& file) {
                  auto* definition = table<Elf64_Verdef>(file, section(file, SHT_GNU_verdef).sh_offset);
                  definition->vd_next = definition->vd_aux = word;
              }) >= 5);
    }
}

TEST_CASE("no function is found with unterminated strings, or outside the contents of executable segments", "[elf]")
{
    auto unterminated = content("lib.so"), not_executable = content("lib.so"), empty = content("lib.so");
    for (const Elf64_Shdr& s : sections(unterminated))
        if (s.sh_type == SHT_STRTAB)
            std::memset(unterminated.data() + s.sh_offset, 'x', s.sh_size);
    for (Elf64_Phdr& s : segments(not_executable))
        s.p_flags &= ~static_cast<Elf64_Word>(PF_X);
    for (Elf64_Phdr& s : segments(empty))
        if (s.p_type == PT_LOAD)
            s.p_filesz = 0;
    for (const Bytes& file : {unterminated, not_executable, empty})
        CHECK(exercise(memory_file(file)) == 0);
}

TEST_CASE("random damage to headers and tables is harmless", "[elf]")
{
    const auto original = content("lib.so");
    auto copy = original;
    std::vector<std::pair<size_t, size_t>> targets = {
        {0, sizeof(Elf64_Ehdr)},
        {header(copy).e_phoff, segments(copy).size_bytes()},
        {header(copy).e_shoff, sections(copy).size_bytes()},
        {header(copy).e_shoff, sections(copy).size_bytes()},
    };
    for (const Elf64_Shdr& s : sections(copy))
        if (s.sh_type != SHT_NULL && s.sh_type != SHT_PROGBITS && s.sh_type != SHT_NOBITS && s.sh_size > 0)
            targets.emplace_back(s.sh_offset, s.sh_size);

    std::mt19937_64 random(20240607); // the same damage every time
    const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
    constexpr std::array<uint64_t, 8> values = {0,           1, 0x7f, 0xffff, 0x7fffffff, 0xffffffff, uint64_t{1} << 40,
                                                ~uint64_t{0}};
    int refused = 0;
    int accepted = 0;
    for (int round = 0; round < 5000; round++) {
        copy = original;
        for (size_t n = 1 + below(6); n > 0; n--) {
            const auto [start, size] = targets[below(targets.size())];
            const size_t at = start + below(size);
            if (below(2) == 0)
                copy[at] ^= static_cast<uint8_t>(1U << below(8));
            else
                std::memcpy(&copy[at], &values[below(values.size())],
                            std::min({copy.size() - at, size_t{1} << below(4), sizeof(uint64_t)}));
        }
        exercise(memory_file(copy)) < 0 ? refused++ : accepted++;
    }
    CHECK(refused > 100);
    CHECK(accepted > 100);
}

TEST_CASE("wrong values in the dynamic section are harmless", "[elf]")
{
    constexpr int most = 7;
    for (const char* name : {"lib.so", "old-hash.so"}) {
        auto file = content(name);
        const Elf64_Shdr dynamic = section(file, SHT_DYNAMIC);
        const Bytes bare = without_sections(file);
        REQUIRE(exercise(memory_file(bare)) > 0);
        const size_t count = dynamic.sh_size / sizeof(Elf64_Dyn);
        for (size_t i = 0; i < count; i++)
            for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{0x200}, uint64_t{1} << 40, ~uint64_t{0}}) {
                Bytes spoilt = bare;
                table<Elf64_Dyn>(spoilt, dynamic.sh_offset)[i].d_un.d_val = value;
                CAPTURE(name, i, value);
                CHECK(exercise(memory_file(spoilt)) <= most);
            }
        std::mt19937 random(1);
        for (int turn = 0; turn < 2000; turn++) {
            Bytes spoilt = bare;
            for (int n = 0; n < 8; n++)
                spoilt[random() % std::min<size_t>(spoilt.size(), 0x1000)] = static_cast<uint8_t>(random());
            CAPTURE(name, turn);
            CHECK(exercise(memory_file(spoilt)) < 100);
        }
    }
}
