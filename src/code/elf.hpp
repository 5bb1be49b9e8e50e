// SPDX-License-Identifier: Apache-2.0
// What a file says about its symbols. The file belongs to the traced process and may be malformed on purpose.
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
    uint64_t address = 0; // st_value: virtual address in the file's own numbering
    uint64_t size = 0;
    uint64_t file_offset = 0; // of the first byte, through the program headers
    bool function = false;    // FUNC (IFUNC is left out), else OBJECT
};

// Of several symbols at one address, the one with the lowest rank is shown: functions before objects, what has a size
// before what has none (a label from assembly), and global names before weak ones (aliases) before local ones.
unsigned symbol_rank(const Elf64_Sym& symbol);

// Bytes of the file, and where they are in its own numbering of virtual addresses.
struct Part {
    uint64_t address = 0;
    uint64_t file_offset = 0;
    uint64_t size = 0;
};

class Elf {
public:
    // Takes the file over. Throws Error where it is no 64-bit x86-64 ELF file, truncated or malformed.
    explicit Elf(Fd file);
    ~Elf();
    Elf(const Elf&) = delete;
    Elf& operator=(const Elf&) = delete;
    Elf(Elf&&) noexcept;
    Elf& operator=(Elf&&) noexcept;

    std::string soname() const;   // DT_SONAME, or empty
    std::string build_id() const; // lower-case hex, or empty
    bool has_section(std::string_view name) const;

    // Defined FUNC symbols of exactly these names from .dynsym and .symtab, any binding and visibility, that lie in
    // an executable segment. Undefined symbols never match. One entry per (name, file offset).
    std::vector<Symbol> functions(std::span<const std::string_view> names) const;

    // The exported object of that name: its address and size. nullopt where there is none.
    std::optional<Part> object(std::string_view name) const;

    // The section of that name, as it is in memory.
    std::optional<Part> section(std::string_view name) const;

    // The FUNC or OBJECT symbol that starts exactly at this virtual address (.symtab before .dynsym).
    std::optional<Symbol> symbol_at(uint64_t address) const;

    // Offset in the file of a virtual address; nullopt where the file has nothing for that address.
    std::optional<uint64_t> offset_of(uint64_t address) const;

    // Up to max bytes of the file at this offset; shorter at the end of the file.
    std::vector<uint8_t> bytes(uint64_t file_offset, size_t max) const;

    // The same into memory that is there; returns how many bytes that were.
    size_t read(uint64_t file_offset, std::span<uint8_t> to) const;

    uint64_t file_size() const;
    void* handle() const; // libelf's, for libdw

    // Program headers. Those of type PT_LOAD lie within the file; addresses and the others may be anything.
    std::span<const Elf64_Phdr> segments() const;

    // Where the code is: the executable sections or, where the file has none, the executable segments.
    std::vector<Part> code() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gpusnoop
