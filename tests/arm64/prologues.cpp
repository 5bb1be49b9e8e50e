// SPDX-License-Identifier: Apache-2.0
// Counts the functions that an arm64 library exports, functions that begin with an instruction that the kernel
// simulates, and gates (functions that end in a jump through a pointer). It parses ELF itself, because code/elf.cpp
// rejects files of another architecture.
#include "attach/placement.hpp"
#include "code/decoder.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <gelf.h>
#include <set>
#include <string_view>
#include <unistd.h>

using namespace gpusnoop;

namespace {

struct File {
    explicit File(const char* path) : fd(open(path, O_RDONLY | O_CLOEXEC)), elf(elf_begin(fd, ELF_C_READ, nullptr)) {}
    ~File()
    {
        elf_end(elf);
        close(fd);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    Elf_Scn* section(GElf_Word type, GElf_Shdr& header) const
    {
        for (Elf_Scn* at = nullptr; (at = elf_nextscn(elf, at));)
            if (gelf_getshdr(at, &header) && header.sh_type == type)
                return at;
        return nullptr;
    }

    // Returns this many bytes of code at an address, or nothing if they do not lie in one segment.
    std::span<const uint8_t> code(uint64_t address, size_t bytes) const
    {
        size_t segments = 0, size = 0;
        const char* const raw = elf_rawfile(elf, &size);
        elf_getphdrnum(elf, &segments);
        for (size_t i = 0; i < segments; i++) {
            GElf_Phdr segment;
            if (gelf_getphdr(elf, static_cast<int>(i), &segment) && segment.p_type == PT_LOAD &&
                address - segment.p_vaddr < segment.p_filesz && address - segment.p_vaddr + bytes <= segment.p_filesz &&
                segment.p_offset + segment.p_filesz <= size)
                return {reinterpret_cast<const uint8_t*>(raw) + segment.p_offset + (address - segment.p_vaddr), bytes};
        }
        return {};
    }

    int fd;
    ::Elf* elf;
};

// A capital letter must follow the prefix: "cu" selects cuInit, but not cudbgMain.
bool is_wanted(std::string_view name, std::string_view prefix)
{
    return name.starts_with(prefix) && (prefix.empty() || (name.size() > prefix.size() && name[prefix.size()] >= 'A' &&
                                                           name[prefix.size()] <= 'Z'));
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3) {
        fputs("usage: prologues LIBRARY PREFIX\n", stderr);
        return 2;
    }
    elf_version(EV_CURRENT);
    const File file(argv[1]);
    GElf_Ehdr header;
    GElf_Shdr symbols;
    if (!file.elf || !gelf_getehdr(file.elf, &header) || header.e_machine != EM_AARCH64)
        return 1;
    Elf_Scn* const section = file.section(SHT_DYNSYM, symbols);
    Elf_Data* const data = section ? elf_getdata(section, nullptr) : nullptr;
    size_t functions = 0, simulated = 0, gates = 0;
    std::set<uint64_t> slots;
    for (int i = 0; data && i < static_cast<int>(symbols.sh_size / symbols.sh_entsize); i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC || !symbol.st_value)
            continue;
        const char* const name = elf_strptr(file.elf, symbols.sh_link, symbol.st_name);
        if (!name || !is_wanted(name, argv[2]))
            continue;
        functions++;
        const std::span<const uint8_t> code = file.code(symbol.st_value, 48);
        simulated += place_on_arm64(code).emulated;
        if (const auto jump = arm64_decoder().thunk_jump({code, symbol.st_value})) {
            gates++;
            slots.insert(jump->target);
        }
    }
    printf("%zu functions, %zu simulated, %zu gates, %zu pointers\n", functions, simulated, gates, slots.size());
}
