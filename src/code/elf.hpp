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
    uint64_t file_offset = 0; // computed from the program headers
    bool function = false;    // true for FUNC, false for OBJECT; IFUNC symbols are skipped
};

// Rank of a symbol. Among symbols with the same address, the one with the lowest rank is shown. Functions rank before
// objects; next, symbols with a size before symbols without a size (assembly labels); next, global symbols before weak
// symbols (aliases) before local symbols.
unsigned symbol_rank(const Elf64_Sym& symbol);

// A range of the file and its ELF virtual address.
struct Part {
    uint64_t address = 0;
    uint64_t file_offset = 0;
    uint64_t size = 0;
};

class Elf {
public:
    // Throws Error if the file is not a 64-bit ELF file for the host's architecture, or is truncated or malformed.
    explicit Elf(Fd file);
    ~Elf();
    Elf(const Elf&) = delete;
    Elf& operator=(const Elf&) = delete;
    Elf(Elf&&) noexcept;
    Elf& operator=(Elf&&) noexcept;

    std::string soname() const;   // DT_SONAME, or empty
    std::string build_id() const; // lower-case hex, or empty
    bool has_section(std::string_view name) const;

    // Returns the defined FUNC symbols in .dynsym and .symtab whose name is one of `names` and that lie in an
    // executable segment. Binding and visibility do not matter. One entry per name and file offset.
    std::vector<Symbol> functions(std::span<const std::string_view> names) const;

    // Returns the range of the exported OBJECT symbol with this name. nullopt if there is none.
    std::optional<Part> object(std::string_view name) const;

    // Returns the range of a section. nullopt if there is none.
    std::optional<Part> section(std::string_view name) const;

    // Returns the FUNC or OBJECT symbol that starts exactly at this virtual address. Prefers .symtab to .dynsym.
    std::optional<Symbol> symbol_at(uint64_t address) const;

    // Returns the file offset of a virtual address. nullopt if the file does not contain that byte.
    std::optional<uint64_t> offset_of(uint64_t address) const;

    // Reads max bytes at this offset, or fewer if the file ends before.
    std::vector<uint8_t> bytes(uint64_t file_offset, size_t max) const;

    // Reads into `to`; returns the number of bytes read.
    size_t read(uint64_t file_offset, std::span<uint8_t> to) const;

    uint64_t file_size() const;
    void* handle() const; // libelf's ::Elf*, for libdw

    // Returns the program headers. PT_LOAD segments are guaranteed to lie within the file. Addresses and other headers
    // are not checked.
    std::span<const Elf64_Phdr> segments() const;

    // Returns the executable sections, or the executable segments if there are no sections.
    std::vector<Part> code() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gpusnoop
