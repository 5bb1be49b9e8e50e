// SPDX-License-Identifier: Apache-2.0
// ELF file reader: symbols, sections and segments. The file belongs to the traced process and may be malformed on
// purpose.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <elf.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct Symbol {
    std::string name;     // without "@VERSION"
    uint64_t address = 0; // st_value: ELF virtual address
    uint64_t size = 0;
    uint64_t file_offset = 0; // derived from the program headers
    bool function = false;    // true: FUNC; false: OBJECT. IFUNC symbols are skipped
};

// Rank of a symbol among those with the same address; the symbol with the lowest rank is shown. Functions come before
// objects, symbols with a size before those without (assembly labels), and global names before weak ones (aliases)
// before local ones.
unsigned symbol_rank(const Elf64_Sym& symbol);

// A range of the file and its ELF virtual address.
struct Part {
    uint64_t address = 0;
    uint64_t file_offset = 0;
    uint64_t size = 0;
};

class Elf {
public:
    // Throws Error if it is not a 64-bit ELF file for the host's architecture, or is truncated or malformed.
    explicit Elf(Fd file);
    ~Elf();
    Elf(const Elf&) = delete;
    Elf& operator=(const Elf&) = delete;
    Elf(Elf&&) noexcept;
    Elf& operator=(Elf&&) noexcept;

    std::string soname() const;   // DT_SONAME, or empty
    std::string build_id() const; // lower-case hex, or empty
    bool has_section(std::string_view name) const;

    // Defined FUNC symbols with exactly these names in .dynsym and .symtab, with any binding and visibility, if they
    // lie in an executable segment. One entry per name and file offset.
    std::vector<Symbol> functions(std::span<const std::string_view> names) const;

    // Address range of the exported OBJECT symbol with this name; nullopt if there is none.
    std::optional<Part> object(std::string_view name) const;

    // Address range of a section; nullopt if there is none.
    std::optional<Part> section(std::string_view name) const;

    // The FUNC or OBJECT symbol that starts exactly at this virtual address. Symbols of .symtab are preferred to those
    // of .dynsym.
    std::optional<Symbol> symbol_at(uint64_t address) const;

    // File offset of a virtual address; nullopt if the file has no byte for it.
    std::optional<uint64_t> offset_of(uint64_t address) const;

    // Reads up to max bytes at this offset; fewer at the end of the file.
    std::vector<uint8_t> bytes(uint64_t file_offset, size_t max) const;

    // Reads into `to`; returns the number of bytes read.
    size_t read(uint64_t file_offset, std::span<uint8_t> to) const;

    uint64_t file_size() const;
    void* handle() const; // libelf's ::Elf*, for libdw

    // Program headers. PT_LOAD segments are verified to lie within the file; addresses and other headers are not
    // checked.
    std::span<const Elf64_Phdr> segments() const;

    // Executable sections, or executable segments if there are no sections.
    std::vector<Part> code() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gpusnoop
