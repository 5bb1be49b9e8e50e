// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/code/elf_fixtures.hpp"

#include "base/machine.hpp"
#include "code/decoder.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <dlfcn.h>
#include <memory>

using gpusnoop::Symbol;
using namespace gpusnoop::elf_fixtures;

namespace {

Symbol only(const gpusnoop::Elf& elf, std::string_view name)
{
    const auto found = functions(elf, {name});
    REQUIRE(found.size() == 1);
    CHECK(found[0].name == name);
    CHECK(found[0].function);
    return found[0];
}

} // namespace

TEST_CASE("functions of any binding and visibility are found", "[elf]")
{
    const auto elf = open_elf("lib.so");
    CHECK(only(elf, "exported").size > 0);
    CHECK(only(elf, "weak_alias").file_offset == only(elf, "exported").file_offset);
    only(elf, "hidden");
    only(elf, "only_local");

    CHECK(functions(elf, {"exported", "hidden", "exported", "nothing", ""}).size() == 2);
    CHECK(functions(elf, {}).empty());
    for (const char* name :
         {"", "export", "exportedd", "object", "object_alias", "chosen", "twice@LIB_1", "__cxa_finalize", "LIB_1"}) {
        CAPTURE(name);
        CHECK(functions(elf, {name}).empty());
    }
}

TEST_CASE("each version of a function is found once", "[elf]")
{
    for (const char* file : {"lib.so", "stripped.so"}) {
        CAPTURE(file);
        const auto found = functions(open_elf(file), {"twice"});
        REQUIRE(found.size() == 2);
        CHECK(found[0].file_offset != found[1].file_offset);
    }
}

TEST_CASE("versions are removed from names in .symtab", "[elf]")
{
    auto file = content("lib.so");
    section(file, SHT_DYNSYM).sh_type = SHT_PROGBITS;
    const gpusnoop::Elf elf(memory_file(file));
    const auto found = functions(elf, {"twice"});
    REQUIRE(found.size() == 2);
    CHECK(found[0].name == "twice");
    CHECK(elf.symbol_at(found[1].address)->name.starts_with("twice"));
}

TEST_CASE("a stripped library keeps .dynsym, a stripped program has no symbols", "[elf]")
{
    const auto library = open_elf("stripped.so");
    only(library, "exported");
    CHECK(functions(library, {"hidden", "only_local"}).empty());

    only(open_elf("pie"), "own");
    CHECK(functions(open_elf("bare"), {"own", "main", "exported"}).empty());
}

TEST_CASE("a library without section headers has the symbols that the loader finds", "[elf]")
{
    for (const char* file : {"lib.so", "old-hash.so"}) { // the number of symbols comes from DT_GNU_HASH or DT_HASH
        CAPTURE(file);
        const auto whole = open_elf(file);
        const gpusnoop::Elf elf(memory_file(without_sections(content(file))));
        for (const char* name : {"exported", "weak_alias"})
            CHECK(only(elf, name).file_offset == only(whole, name).file_offset);
        CHECK(functions(elf, {"twice"}).size() == 2);
        CHECK(functions(elf, {"hidden", "only_local", "__cxa_finalize"}).empty());
        CHECK(elf.symbol_at(only(whole, "exported").address)->name == "exported");
        CHECK(elf.soname() == "libfixture.so.1");
    }
    const gpusnoop::Elf program(memory_file(without_sections(content("pie"))));
    CHECK(functions(program, {"own", "main", "exported"}).empty());
}

TEST_CASE("an undefined symbol never matches, even if it has an address", "[elf]")
{
    auto file = content("no-pie");
    const auto symbols = entries<Elf64_Sym>(file, SHT_DYNSYM);
    REQUIRE(std::any_of(symbols.begin(), symbols.end(), [](const Elf64_Sym& s) {
        return s.st_shndx == SHN_UNDEF && ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_value != 0;
    }));
    for (const char* name : {"pie", "no-pie"}) {
        CAPTURE(name);
        const auto elf = open_elf(name);
        CHECK(functions(elf, {"exported"}).empty());
        CHECK(only(elf, "own").size > 0);
        CHECK(only(elf, "main").size > 0);
    }
    for (const Elf64_Sym& s : symbols)
        if (s.st_value != 0)
            CHECK_FALSE(open_elf("no-pie").symbol_at(s.st_value));
}

TEST_CASE("addresses and file offsets match the library as the loader maps it", "[elf]")
{
    const auto elf = open_elf("lib.so");
    const std::unique_ptr<void, int (*)(void*)> library(dlopen(fixtures().file("lib.so").c_str(), RTLD_NOW), dlclose);
    REQUIRE(library);

    const auto check = [&elf](const Symbol& symbol, const void* loaded) {
        REQUIRE(loaded != nullptr);
        Dl_info info{};
        REQUIRE(dladdr(loaded, &info) != 0);
        CHECK(static_cast<const char*>(info.dli_fbase) + symbol.address == loaded);
        const Bytes in_file = elf.bytes(symbol.file_offset, symbol.size);
        CHECK(in_file.size() == symbol.size);
        CHECK(std::memcmp(in_file.data(), loaded, in_file.size()) == 0);
    };
    check(only(elf, "exported"), dlsym(library.get(), "exported"));
    auto twice = functions(elf, {"twice"});
    std::array loaded = {dlvsym(library.get(), "twice", "LIB_1"), dlvsym(library.get(), "twice", "LIB_2")};
    REQUIRE(twice.size() == loaded.size());
    std::ranges::sort(twice, {}, &Symbol::address);
    std::ranges::sort(loaded);
    for (size_t i = 0; i < loaded.size(); i++)
        check(twice[i], loaded[i]);

    const auto* const base = static_cast<const char*>(dlsym(library.get(), "exported")) - only(elf, "exported").address;
    const auto* const object = static_cast<const char*>(dlsym(library.get(), "object"));
    const auto found = elf.symbol_at(static_cast<uint64_t>(object - base));
    REQUIRE(found);
    CHECK(found->size == 4);
    CHECK(elf.bytes(found->file_offset, 4) == Bytes{42, 0, 0, 0});
}

TEST_CASE("the symbol at an address", "[elf]")
{
    for (const char* file : {"lib.so", "stripped.so"}) {
        CAPTURE(file);
        const auto elf = open_elf(file);
        const Symbol exported = only(elf, "exported");
        const auto found = elf.symbol_at(exported.address);
        REQUIRE(found);
        CHECK(found->name == "exported");                                                  // not its alias weak_alias
        CHECK(elf.symbol_at(only(elf, "from_assembly").address)->name == "from_assembly"); // not its alias object_alias
        CHECK(found->function);
        CHECK(found->file_offset == exported.file_offset);
        CHECK_FALSE(elf.symbol_at(exported.address + 1));
        CHECK_FALSE(elf.symbol_at(0)); // version names are absolute symbols with this address
        CHECK_FALSE(elf.symbol_at(~uint64_t{0}));
    }
    CHECK(open_elf("stripped.so").symbol_at(only(open_elf("lib.so"), "exported").address)->name == "exported");
    const auto elf = open_elf("lib.so");
    CHECK(elf.symbol_at(only(elf, "only_local").address)->name == "only_local");
    CHECK(elf.symbol_at(only(elf, "hidden").address)->name == "hidden");
    CHECK(elf.symbol_at(only(elf, "label").address)->name == "sized");

    int zeroed = 0;
    auto file = content("lib.so");
    for (const Elf64_Sym& s : entries<Elf64_Sym>(file, SHT_DYNSYM)) {
        const auto found = ELF64_ST_TYPE(s.st_info) == STT_OBJECT ? elf.symbol_at(s.st_value) : std::nullopt;
        if (!found || found->name != "zeroed")
            continue;
        zeroed++;
        CHECK_FALSE(found->function);
        CHECK(found->file_offset == 0); // .bss is not in the file
    }
    CHECK(zeroed == 1);
}

TEST_CASE("soname, build id and sections are read", "[elf]")
{
    const auto library = open_elf("lib.so");
    CHECK(library.soname() == "libfixture.so.1");
    CHECK(library.build_id() == "00112233445566778899aabbccddeeff00ff10ab");
    CHECK(library.has_section(".text"));
    CHECK(library.has_section(".gnu.version_d"));
    for (const char* absent : {"", ".tex", ".text2", "text", ".nv_fatbin"})
        CHECK_FALSE(library.has_section(absent));
    CHECK(open_elf("pie").soname().empty());

    CHECK(library.bytes(0, 4) == Bytes{0x7f, 'E', 'L', 'F'});
    const auto size = content("lib.so").size();
    CHECK(library.bytes(0, size + 100).size() == size);
    CHECK(library.bytes(size - 3, 100).size() == 3);
    CHECK(library.bytes(size, 100).empty());
    CHECK(library.bytes(~uint64_t{0}, 100).empty());
}
