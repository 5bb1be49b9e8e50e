// SPDX-License-Identifier: Apache-2.0
// A file's content by virtual address, and what the loader would put there. Reads in blocks, so that a library of a
// gigabyte costs no more memory than what is looked at.
#pragma once

#include "code/elf.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusnoop {

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

} // namespace gpusnoop
