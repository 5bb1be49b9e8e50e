// SPDX-License-Identifier: Apache-2.0
// A library and programs compiled for the tests, and access to their ELF tables, which tests damage.
#pragma once

#include "code/elf.hpp"

#include "tests/unit/base/folder.hpp"

#include <algorithm>
#include <elf.h>
#include <fcntl.h>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace gpusnoop::elf_fixtures {

using Bytes = std::vector<uint8_t>;
using Names = std::vector<std::string_view>;

inline constexpr const char* library_source = R"(
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
        "object_alias: from_assembly: ret; .size from_assembly, 1; .size object_alias, 1\n"
        ".globl label, sized; .type label,@function; .type sized,@function; label: sized: ret; .size sized, 1");
)";

inline constexpr const char* version_script = R"(
LIB_1 { global: exported; weak_alias; twice; object; object_alias; from_assembly; zeroed; chosen; local: *; };
LIB_2 { global: twice; } LIB_1;
)";

inline constexpr const char* program_source = R"(
int exported(int);
int (*volatile pointer)(int);
int own(int x) { return pointer(x); }
int main(void) { pointer = exported; return own(1); }
)";

// A folder for files that are built by shell commands.
struct BuildFolder : Folder {
    bool try_run(const std::string& command) const
    {
        return std::system(("cd " + path() + " && " + command).c_str()) == 0; // NOLINT
    }
    void run(const std::string& command) const
    {
        if (!try_run(command))
            throw std::runtime_error("cannot build a fixture: " + command);
    }
};

struct Fixtures : BuildFolder {
    Fixtures()
    {
        file("lib.c", library_source);
        file("lib.map", version_script);
        file("main.c", program_source);
        run("gcc -O1 -fPIC -shared lib.c -o lib.so -Wl,--version-script=lib.map,-soname,libfixture.so.1,--build-id=0x"
            "00112233445566778899aabbccddeeff00ff10ab -Wl,-z,noseparate-code");
        run("cp lib.so stripped.so && strip stripped.so");
        run("gcc -O1 -fPIE -pie main.c ./lib.so -o pie");
        run("gcc -O1 -fno-pic -no-pie main.c ./lib.so -o no-pie");
        run("cp pie bare && strip bare");
        run("gcc -c main.c -o main.o");
        run("gcc -O1 -fPIC -shared lib.c -o old-hash.so -Wl,--version-script=lib.map,-soname,libfixture.so.1,"
            "--hash-style=sysv");
    }
};

inline const Fixtures& fixtures()
{
    static const Fixtures all;
    return all;
}

inline Elf open_elf(const char* fixture)
{
    return Elf(Fd(open(fixtures().file(fixture).c_str(), O_RDONLY | O_CLOEXEC)));
}

inline Bytes content(const char* fixture)
{
    const std::string bytes = contents(fixtures().file(fixture));
    return {bytes.begin(), bytes.end()};
}

// Returns a file with this content, extended by a hole to `size` bytes.
inline Fd memory_file(std::span<const uint8_t> bytes, off_t size = 0)
{
    Fd fd(memfd_create("elf-test", MFD_CLOEXEC));
    REQUIRE(write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    if (size > 0)
        REQUIRE(ftruncate(fd.get(), size) == 0);
    return fd;
}

inline std::vector<Symbol> functions(const Elf& elf, const Names& names)
{
    return elf.functions(names);
}

// Typed access to the tables of a well-formed file.
template<typename T>
T* table(Bytes& file, uint64_t offset)
{
    return reinterpret_cast<T*>(file.data() + offset);
}

inline Elf64_Ehdr& header(Bytes& file)
{
    return *table<Elf64_Ehdr>(file, 0);
}

inline std::span<Elf64_Shdr> sections(Bytes& file)
{
    return {table<Elf64_Shdr>(file, header(file).e_shoff), header(file).e_shnum};
}

inline std::span<Elf64_Phdr> segments(Bytes& file)
{
    return {table<Elf64_Phdr>(file, header(file).e_phoff), header(file).e_phnum};
}

inline Elf64_Shdr& section(Bytes& file, Elf64_Word type)
{
    const auto all = sections(file);
    const auto found = std::find_if(all.begin(), all.end(), [type](const auto& s) { return s.sh_type == type; });
    REQUIRE(found != all.end());
    return *found;
}

// Returns the file as strip --strip-section-headers would leave it.
inline Bytes without_sections(Bytes file)
{
    header(file).e_shoff = 0;
    header(file).e_shnum = 0;
    header(file).e_shstrndx = 0;
    return file;
}

template<typename T>
std::span<T> entries(Bytes& file, Elf64_Word type)
{
    const Elf64_Shdr& s = section(file, type);
    return {table<T>(file, s.sh_offset), s.sh_size / sizeof(T)};
}

} // namespace gpusnoop::elf_fixtures
