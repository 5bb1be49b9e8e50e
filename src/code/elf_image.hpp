// SPDX-License-Identifier: Apache-2.0
// A file's content by virtual address, and what the loader would put there. Reads in blocks, so that a library of a
// gigabyte costs no more memory than what is looked at.
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

    // As many bytes as the file has for this address.
    size_t read(uint64_t address, std::span<uint8_t> to) const;

    // Up to the zero that ends it; empty where none does within max bytes.
    std::string string_at(uint64_t address, size_t max) const;

    bool executable(uint64_t address) const { return within(address, PF_X); }
    bool writable(uint64_t address) const { return within(address, PF_W); }

    // Where the loader puts the address of a function of this name, for each of the names.
    std::vector<std::vector<uint64_t>> slots(std::span<const std::string_view> names) const;

    // What lies at these addresses once the file is loaded at 0: relocated, or as the file has it. Addresses at which
    // that is not known are left out.
    std::unordered_map<uint64_t, uint64_t> pointers(std::span<const uint64_t> addresses) const;

    // What the dynamic section says under this tag.
    std::optional<uint64_t> dynamic(int64_t tag) const;

    // Up to `count` values at this address; fewer if the file ends.
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
    std::map<int64_t, uint64_t> dynamic_; // by tag
    mutable std::map<uint64_t, std::vector<uint8_t>> blocks_;
};

// Load bias of a mapped file: what is added to an address in the file's own numbering to get the process's address.
// The one of the segment that the mapping shows at `address`, which lies within it. nullopt where no PT_LOAD segment
// has the page. The file offset alone does not identify the segment: lld and mold do not pad the file, so a page may
// hold the end of one segment and the start of the next, at different biases, and is mapped once for each.
std::optional<uint64_t> load_bias(std::span<const Elf64_Phdr> segments, const Mapping& mapping, uint64_t address);

// The symbols of a file without section headers (strip --strip-section-headers), found as the loader finds them: it
// asks the segments alone.
struct DynamicSymbols {
    std::vector<Elf64_Sym> symbols; // empty where there are none
    std::string strings;
    uint64_t soname = 0; // in the strings; 0: none
};

// Whatever the file says: tables that do not fit in it, or that are larger than real ones, count as absent.
DynamicSymbols dynamic_symbols(const Elf& elf);

} // namespace gpusnoop
