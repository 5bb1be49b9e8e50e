// SPDX-License-Identifier: Apache-2.0
#include "elf.hpp"

#include "error.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <sys/mman.h>

using gpusnoop::Error;
using gpusnoop::Fd;
using gpusnoop::Symbol;

namespace {

using Bytes = std::vector<uint8_t>;
using Names = std::vector<std::string_view>;

constexpr const char* library_source = R"(
int exported(int x) { return x + 1; }
int twice_old(int x) { return x + x; }
int twice_new(int x) { return 2 * x; }
__asm__(".symver twice_old,twice@LIB_1");
__asm__(".symver twice_new,twice@@LIB_2");
__attribute__((visibility("hidden"), noinline)) int hidden(int x) { return x - 1; }
static __attribute__((noinline, used)) int only_local(int x) { return x * 3; }
int weak_alias(int) __attribute__((weak, alias("exported")));
int object = 42;
int zeroed;
int chosen(int) __attribute__((ifunc("choose")));
static int (*choose(void))(int) { return only_local; }
__asm__(".text; .globl object_alias, from_assembly; .type object_alias,@object; .type from_assembly,@function\n"
        "object_alias: from_assembly: ret; .size from_assembly, 1; .size object_alias, 1");
)";

constexpr const char* version_script = R"(
LIB_1 { global: exported; weak_alias; twice; object; object_alias; from_assembly; zeroed; chosen; local: *; };
LIB_2 { global: twice; } LIB_1;
)";

constexpr const char* program_source = R"(
int exported(int);
int (*volatile pointer)(int);
int own(int x) { return pointer(x); }
int main(void) { pointer = exported; return own(1); }
)";

class Fixtures {
public:
    Fixtures()
    {
        char name[] = "/tmp/gpusnoop-elf-test-XXXXXX";
        dir_ = mkdtemp(name);
        std::ofstream(dir_ / "lib.c") << library_source;
        std::ofstream(dir_ / "lib.map") << version_script;
        std::ofstream(dir_ / "main.c") << program_source;
        run("gcc -O1 -fPIC -shared lib.c -o lib.so -Wl,--version-script=lib.map,-soname,libfixture.so.1,--build-id=0x"
            "00112233445566778899aabbccddeeff00ff10ab -Wl,-z,noseparate-code");
        run("cp lib.so stripped.so && strip stripped.so");
        run("gcc -O1 -fPIE -pie main.c ./lib.so -o pie");
        run("gcc -O1 -fno-pic -no-pie main.c ./lib.so -o no-pie");
        run("cp pie bare && strip bare");
        run("gcc -c main.c -o main.o");
    }
    Fixtures(const Fixtures&) = delete;
    Fixtures(Fixtures&&) = delete;
    Fixtures& operator=(const Fixtures&) = delete;
    Fixtures& operator=(Fixtures&&) = delete;
    ~Fixtures()
    {
        std::error_code ignored;
        std::filesystem::remove_all(dir_, ignored);
    }

    std::string path(const char* name) const { return dir_ / name; }

private:
    void run(const std::string& command) const
    {
        if (std::system(("cd " + dir_.string() + " && " + command).c_str()) != 0)
            throw std::runtime_error("cannot build a fixture: " + command);
    }

    std::filesystem::path dir_;
};

const Fixtures& fixtures()
{
    static const Fixtures all;
    return all;
}

gpusnoop::Elf open_elf(const char* fixture)
{
    return gpusnoop::Elf(Fd(open(fixtures().path(fixture).c_str(), O_RDONLY | O_CLOEXEC)));
}

Bytes content(const char* fixture)
{
    std::ifstream file(fixtures().path(fixture), std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(file), {});
}

// A file with this content, and then a hole up to `size`.
Fd memory_file(std::span<const uint8_t> bytes, off_t size = 0)
{
    Fd fd(memfd_create("elf-test", MFD_CLOEXEC));
    REQUIRE(write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    if (size > 0)
        REQUIRE(ftruncate(fd.get(), size) == 0);
    return fd;
}

std::string error_of(Fd file)
{
    try {
        const gpusnoop::Elf elf(std::move(file));
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

std::vector<Symbol> functions(const gpusnoop::Elf& elf, const Names& names)
{
    return elf.functions(names);
}

Symbol only(const gpusnoop::Elf& elf, std::string_view name)
{
    const auto found = functions(elf, {name});
    REQUIRE(found.size() == 1);
    CHECK(found[0].name == name);
    CHECK(found[0].function);
    return found[0];
}

// Calls everything, and counts the functions found; -1 where the file is refused.
int exercise(Fd file)
{
    try {
        const gpusnoop::Elf elf(std::move(file));
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
            (void)elf.address_of(value);
            (void)elf.bytes(value, 16);
        }
        return static_cast<int>(found.size());
    } catch (const Error&) {
        return -1;
    }
}

// The tables of a well-formed file, to be spoilt.
template<typename T>
T* table(Bytes& file, uint64_t offset)
{
    return reinterpret_cast<T*>(file.data() + offset);
}

Elf64_Ehdr& header(Bytes& file)
{
    return *table<Elf64_Ehdr>(file, 0);
}

std::span<Elf64_Shdr> sections(Bytes& file)
{
    return {table<Elf64_Shdr>(file, header(file).e_shoff), header(file).e_shnum};
}

std::span<Elf64_Phdr> segments(Bytes& file)
{
    return {table<Elf64_Phdr>(file, header(file).e_phoff), header(file).e_phnum};
}

Elf64_Shdr& section(Bytes& file, Elf64_Word type)
{
    const auto all = sections(file);
    const auto found = std::find_if(all.begin(), all.end(), [type](const auto& s) { return s.sh_type == type; });
    REQUIRE(found != all.end());
    return *found;
}

template<typename T>
std::span<T> entries(Bytes& file, Elf64_Word type)
{
    const Elf64_Shdr& s = section(file, type);
    return {table<T>(file, s.sh_offset), s.sh_size / sizeof(T)};
}

} // namespace

TEST_CASE("functions of a shared library, of any binding and visibility", "[elf]")
{
    const auto elf = open_elf("lib.so");
    CHECK(only(elf, "exported").version == "LIB_1");
    CHECK(only(elf, "exported").size > 0);
    CHECK(only(elf, "weak_alias").file_offset == only(elf, "exported").file_offset);
    CHECK(only(elf, "hidden").version.empty());
    CHECK(only(elf, "only_local").version.empty());

    CHECK(functions(elf, {"exported", "hidden", "exported", "nothing", ""}).size() == 2);
    CHECK(functions(elf, {}).empty());
    for (const char* name :
         {"", "export", "exportedd", "object", "object_alias", "chosen", "twice@LIB_1", "__cxa_finalize", "LIB_1"}) {
        CAPTURE(name);
        CHECK(functions(elf, {name}).empty());
    }
}

TEST_CASE("all versions of a function, each once", "[elf]")
{
    for (const char* file : {"lib.so", "stripped.so"}) {
        CAPTURE(file);
        auto found = functions(open_elf(file), {"twice"});
        REQUIRE(found.size() == 2);
        std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.version < b.version; });
        CHECK(found[0].version == "LIB_1");
        CHECK(found[1].version == "LIB_2");
        CHECK(found[0].file_offset != found[1].file_offset);
    }
}

TEST_CASE("versions are cut off names in .symtab", "[elf]")
{
    auto file = content("lib.so");
    section(file, SHT_DYNSYM).sh_type = SHT_PROGBITS;
    const gpusnoop::Elf elf(memory_file(file));
    const auto found = functions(elf, {"twice"});
    REQUIRE(found.size() == 2);
    CHECK(found[0].name == "twice");
    CHECK(found[0].version.empty());
    CHECK(elf.symbol_at(found[1].address)->name.starts_with("twice"));
}

TEST_CASE("a stripped library has its .dynsym, a stripped program nothing", "[elf]")
{
    const auto library = open_elf("stripped.so");
    CHECK(only(library, "exported").version == "LIB_1");
    CHECK(functions(library, {"hidden", "only_local"}).empty());

    CHECK(only(open_elf("pie"), "own").version.empty());
    CHECK(functions(open_elf("bare"), {"own", "main", "exported"}).empty());

    auto no_sections = content("lib.so");
    header(no_sections).e_shoff = 0;
    header(no_sections).e_shnum = 0;
    header(no_sections).e_shstrndx = 0;
    const gpusnoop::Elf elf(memory_file(no_sections));
    CHECK(functions(elf, {"exported", "hidden"}).empty());
    CHECK_FALSE(elf.symbol_at(only(library, "exported").address));
    CHECK(elf.soname().empty());
    CHECK(elf.address_of(0) == 0);
}

TEST_CASE("an undefined symbol never matches, not even one that has an address", "[elf]")
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

TEST_CASE("addresses and file offsets are those of the loaded library", "[elf]")
{
    const auto elf = open_elf("lib.so");
    const std::unique_ptr<void, int (*)(void*)> library(dlopen(fixtures().path("lib.so").c_str(), RTLD_NOW), dlclose);
    REQUIRE(library);

    const auto check = [&elf](const Symbol& symbol, const void* loaded) {
        REQUIRE(loaded != nullptr);
        Dl_info info{};
        REQUIRE(dladdr(loaded, &info) != 0);
        CHECK(static_cast<const char*>(info.dli_fbase) + symbol.address == loaded);
        CHECK(elf.address_of(symbol.file_offset) == symbol.address);
        const Bytes in_file = elf.bytes(symbol.file_offset, symbol.size);
        CHECK(in_file.size() == symbol.size);
        CHECK(std::memcmp(in_file.data(), loaded, in_file.size()) == 0);
    };
    check(only(elf, "exported"), dlsym(library.get(), "exported"));
    for (const Symbol& symbol : functions(elf, {"twice"}))
        check(symbol, dlvsym(library.get(), "twice", symbol.version.c_str()));

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
        CHECK(found->name == "exported");                                                  // not weak_alias
        CHECK(elf.symbol_at(only(elf, "from_assembly").address)->name == "from_assembly"); // not object_alias
        CHECK(found->function);
        CHECK(found->file_offset == exported.file_offset);
        CHECK_FALSE(elf.symbol_at(exported.address + 1));
        CHECK_FALSE(elf.symbol_at(0)); // where the versions' absolute symbols are
        CHECK_FALSE(elf.symbol_at(~uint64_t{0}));
    }
    CHECK(open_elf("stripped.so").symbol_at(only(open_elf("lib.so"), "exported").address)->version == "LIB_1");
    const auto elf = open_elf("lib.so");
    CHECK(elf.symbol_at(only(elf, "only_local").address)->name == "only_local");
    CHECK(elf.symbol_at(only(elf, "hidden").address)->name == "hidden");

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

TEST_CASE("what the file says about itself", "[elf]")
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

TEST_CASE("an offset in the part of a page that only the mapping adds", "[elf]")
{
    auto file = content("pie");
    const auto all = segments(file);
    const auto data = std::find_if(all.begin(), all.end(),
                                   [](const auto& s) { return s.p_type == PT_LOAD && (s.p_flags & PF_W) != 0; });
    REQUIRE(data != all.end());
    REQUIRE(data->p_offset % 4096 > 8);
    std::prev(data)->p_type = PT_NULL; // it may show the same page
    const gpusnoop::Elf elf(memory_file(file));
    CHECK(elf.address_of(data->p_offset) == data->p_vaddr);
    CHECK(elf.address_of(data->p_offset - 8) == data->p_vaddr - 8);
    CHECK(elf.address_of(data->p_offset + data->p_filesz) == data->p_vaddr + data->p_filesz);
    CHECK_FALSE(elf.address_of(data->p_offset + data->p_filesz + 4096));
    CHECK_FALSE(elf.address_of(~uint64_t{0}));
}

TEST_CASE("files that are refused, and why", "[elf]")
{
    const auto changed = [](const std::function<void(Elf64_Ehdr&)>& change) {
        auto file = content("stripped.so");
        change(header(file));
        return error_of(memory_file(file));
    };
    CHECK(error_of(memory_file(Bytes{})) == "not an ELF file");
    CHECK(error_of(memory_file(Bytes(10000, '#'))) == "not an ELF file");
    CHECK(error_of(memory_file(Bytes{0x7f, 'E', 'L', 'F'})) == "truncated ELF file");
    CHECK(error_of(Fd(open("/", O_RDONLY | O_CLOEXEC))) == "not a regular file");
    CHECK(error_of(Fd()).starts_with("cannot read ELF file: "));
    CHECK(error_of(Fd(open(fixtures().path("main.o").c_str(), O_RDONLY | O_CLOEXEC))) ==
          "ELF file is neither a program nor a shared library");
    CHECK(changed([](auto& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }) == "32-bit ELF file");
    CHECK(changed([](auto& h) { h.e_machine = EM_AARCH64; }) == "ELF file for another machine (aarch64)");
    CHECK(changed([](auto& h) { h.e_machine = EM_RISCV; }) == "ELF file for another machine (number 243)");
    CHECK(changed([](auto& h) { h.e_shnum = 0; }).starts_with("malformed ELF file"));
    CHECK(changed([](auto& h) { h.e_phnum = PN_XNUM; }).starts_with("malformed ELF file"));
    CHECK(changed([](auto& h) { h.e_shoff = ~uint64_t{0}; }) == "truncated ELF file");
    CHECK(changed([](auto& h) { h.e_phoff = ~uint64_t{0}; }) == "truncated ELF file");
    CHECK(changed([](auto&) {}).empty());
}

TEST_CASE("a file cut short is refused or has no symbols", "[elf]")
{
    const auto file = content("lib.so");
    REQUIRE(exercise(memory_file(file)) > 0);
    for (size_t size = 0; size < file.size(); size += 64) {
        CAPTURE(size);
        CHECK(exercise(memory_file(std::span(file).first(size))) <= 0);
    }
}

TEST_CASE("a file that shrinks under the reader", "[elf]")
{
    const auto file = content("lib.so");
    const Fd fd = memory_file(file);
    const gpusnoop::Elf elf(Fd(dup(fd.get())));
    REQUIRE(ftruncate(fd.get(), 100) == 0);
    CHECK(functions(elf, {"exported"}).empty());
    CHECK_FALSE(elf.symbol_at(0x1000));
    CHECK(elf.bytes(0, 200).size() == 100);
}

TEST_CASE("lies in the tables", "[elf]")
{
    constexpr int most = 14; // 7 functions in two tables
    constexpr uint64_t huge = uint64_t{1} << 40;
    const auto spoilt = [](const std::function<void(Bytes&)>& spoil, off_t size = 0) {
        auto file = content("lib.so");
        spoil(file);
        return exercise(memory_file(file, size));
    };
    const auto each_section = [](uint64_t Elf64_Shdr::*field, uint64_t value) {
        return [field, value](Bytes& file) {
            for (Elf64_Shdr& s : sections(file))
                s.*field = value;
        };
    };
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, huge, uint64_t{1} << 63, ~uint64_t{0}}) {
        CAPTURE(value);
        for (const auto field : {&Elf64_Shdr::sh_offset, &Elf64_Shdr::sh_size, &Elf64_Shdr::sh_entsize,
                                 &Elf64_Shdr::sh_flags, &Elf64_Shdr::sh_addralign}) {
            CHECK(spoilt(each_section(field, value)) <= most);
            CHECK(spoilt(each_section(field, value), 4 * huge) <= most); // the file is large enough, being a hole
        }
        CHECK(spoilt([value](Bytes& file) {
                  for (Elf64_Shdr& s : sections(file))
                      s.sh_link = s.sh_info = s.sh_name = static_cast<Elf64_Word>(value);
              }) <= most);
        CHECK(spoilt([value](Bytes& file) {
                  for (Elf64_Sym& s : entries<Elf64_Sym>(file, SHT_DYNSYM))
                      s.st_name = static_cast<Elf64_Word>(value);
              }) <= most);
        CHECK(spoilt([value](Bytes& file) {
                  for (Elf64_Sym& s : entries<Elf64_Sym>(file, SHT_SYMTAB))
                      s.st_value = s.st_size = value;
              }) <= most);
        CHECK(spoilt([value](Bytes& file) {
                  for (Elf64_Phdr& s : segments(file))
                      s.p_vaddr = s.p_memsz = s.p_align = value;
              }) <= most);
        CHECK(spoilt([value](Bytes& file) {
                  auto* definition = table<Elf64_Verdef>(file, section(file, SHT_GNU_verdef).sh_offset);
                  definition->vd_next = definition->vd_aux = static_cast<Elf64_Word>(value);
              }) >= 5);
        CHECK(spoilt([value](Bytes& file) {
                  for (Elf64_Half& index : entries<Elf64_Half>(file, SHT_GNU_versym))
                      index = static_cast<Elf64_Half>(value);
              }) >= 5);
    }
}

TEST_CASE("strings without an end", "[elf]")
{
    auto file = content("lib.so");
    for (const Elf64_Shdr& s : sections(file))
        if (s.sh_type == SHT_STRTAB)
            std::memset(file.data() + s.sh_offset, 'x', s.sh_size);
    CHECK(exercise(memory_file(file)) == 0);
}

TEST_CASE("functions outside of an executable segment's part of the file", "[elf]")
{
    auto file = content("lib.so");
    for (Elf64_Phdr& s : segments(file))
        s.p_flags &= ~static_cast<Elf64_Word>(PF_X);
    CHECK(exercise(memory_file(file)) == 0);

    file = content("lib.so");
    for (Elf64_Phdr& s : segments(file))
        if (s.p_type == PT_LOAD)
            s.p_filesz = 0;
    CHECK(exercise(memory_file(file)) == 0);
}

TEST_CASE("random damage to headers and tables", "[elf]")
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
