// SPDX-License-Identifier: Apache-2.0
// Reader of an ELF file by virtual address. It can also apply relocations as the loader would. Reads the file in
// blocks, so even a library of a gigabyte needs little memory.
#pragma once

#include "code/elf.hpp"

#include <algorithm>
#include <cstdint>
#include <elf.h>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusnoop {

struct Mapping;

class ElfImage {
public:
    explicit ElfImage(const Elf& elf);

    // Reads up to to.size() bytes at this virtual address. Returns the number of bytes read, which is lower if the file
    // has fewer bytes there.
    size_t read(uint64_t address, std::span<uint8_t> to) const;

    // Returns the zero-terminated string at this address. Empty if it is longer than max bytes.
    std::string string_at(uint64_t address, size_t max) const;

    bool executable(uint64_t address) const { return within(address, PF_X); }
    bool writable(uint64_t address) const { return within(address, PF_W); }

    // Returns, for each name, the addresses (GOT entries) at which the loader stores the address of the function.
    std::vector<std::vector<uint64_t>> slots(std::span<const std::string_view> names) const;

    // Returns a map from these addresses to the pointers stored there after relocation, as if the file were loaded at
    // 0. Omits addresses whose pointer is unknown.
    std::unordered_map<uint64_t, uint64_t> pointers(std::span<const uint64_t> addresses) const;

    // Returns the value of a dynamic tag (DT_*).
    std::optional<uint64_t> dynamic(int64_t tag) const;

    // Reads `count` values at this address, or fewer if the file ends earlier.
    template<class T>
    std::vector<T> at(uint64_t address, uint64_t count) const
    {
        std::vector<T> all(std::min(count, elf_.file_size() / sizeof(T)));
        all.resize(read(address, {reinterpret_cast<uint8_t*>(all.data()), all.size() * sizeof(T)}) / sizeof(T));
        return all;
    }

private:
    bool within(uint64_t address, uint32_t flag) const;
    const std::vector<uint8_t>& block(uint64_t number) const;
    void each_relocation(const std::function<void(const Elf64_Rela&)>& found) const;
    template<class T>
    bool load(uint64_t address, T& to) const
    {
        return read(address, {reinterpret_cast<uint8_t*>(&to), sizeof(T)}) == sizeof(T);
    }
    bool symbol(uint64_t index, Elf64_Sym& to) const;

    const Elf& elf_;
    std::map<int64_t, uint64_t> dynamic_; // tag (DT_*) -> value
    mutable std::map<uint64_t, std::vector<uint8_t>> blocks_;
};

// Returns the load bias of a mapped file (process address minus ELF virtual address) for the segment mapped at
// `address`, which lies within `mapping`. nullopt if no PT_LOAD segment contains the page. The file offset alone does
// not identify the segment: lld and mold do not pad the file, so a page may contain the end of one segment and the
// start of the next. Such a page is mapped twice, once for each segment, with different biases.
std::optional<uint64_t> load_bias(std::span<const Elf64_Phdr> segments, const Mapping& mapping, uint64_t address);

// Dynamic symbols of a file without section headers (strip --strip-section-headers), read through PT_DYNAMIC as the
// loader does.
struct DynamicSymbols {
    std::vector<Elf64_Sym> symbols;
    std::string strings;
    uint64_t soname = 0; // offset of the name in strings; 0: none
};

// Treats tables that extend past the end of the file or are implausibly large as absent.
DynamicSymbols dynamic_symbols(const Elf& elf);

} // namespace gpusnoop
