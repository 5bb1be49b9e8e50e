// SPDX-License-Identifier: Apache-2.0
#include "code/dynamic_symbols.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr uint64_t max_symbols = 1 << 20;
constexpr uint64_t max_strings = 64 << 20;
constexpr uint64_t max_entries = 4096; // of the dynamic section, which has some thirty

class Segments {
public:
    Segments(const Fd& file, std::span<const Elf64_Phdr> all) : file_(file), all_(all) {}

    const Elf64_Phdr* dynamic() const
    {
        const auto found = std::ranges::find(all_, Elf64_Word{PT_DYNAMIC}, &Elf64_Phdr::p_type);
        return found != all_.end() ? &*found : nullptr;
    }

    // Up to so many things from this address on, as many as the file has.
    template<typename T>
    std::vector<T> at(uint64_t address, uint64_t count) const
    {
        for (const Elf64_Phdr& segment : all_) {
            if (segment.p_type != PT_LOAD || address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
                continue;
            const uint64_t behind = address - segment.p_vaddr;
            return read<T>(segment.p_offset + behind, std::min(count, (segment.p_filesz - behind) / sizeof(T)));
        }
        return {};
    }

    template<typename T>
    std::vector<T> read(uint64_t offset, uint64_t count) const
    {
        std::vector<T> all(count);
        const ssize_t got = pread(file_.get(), all.data(), count * sizeof(T), static_cast<off_t>(offset));
        all.resize(got > 0 ? static_cast<size_t>(got) / sizeof(T) : 0);
        return all;
    }

private:
    const Fd& file_;
    std::span<const Elf64_Phdr> all_;
};

// What is in the table behind the symbols is told by how they are hashed.
uint64_t count_by_hash(const Segments& file, uint64_t address)
{
    const auto header = file.at<uint32_t>(address, 2); // buckets, symbols
    return header.size() == 2 ? std::min<uint64_t>(header[1], max_symbols) : 0;
}

// Buckets with the first symbol of each chain; the last symbol of a chain has the lowest bit set.
uint64_t count_by_gnu_hash(const Segments& file, uint64_t address)
{
    const auto header = file.at<uint32_t>(address, 4); // buckets, first symbol in one, words of the filter, shift
    if (header.size() != 4 || header[0] > max_symbols || header[2] > max_symbols)
        return 0;
    const uint64_t buckets_at = address + sizeof(uint32_t) * 4 + sizeof(uint64_t) * header[2];
    const auto buckets = file.at<uint32_t>(buckets_at, header[0]);
    const uint64_t last = buckets.empty() ? 0 : *std::ranges::max_element(buckets);
    if (last < header[1] || last > max_symbols)
        return 0;
    const uint64_t chains_at = buckets_at + sizeof(uint32_t) * header[0];
    const auto chain = file.at<uint32_t>(chains_at + sizeof(uint32_t) * (last - header[1]), max_symbols - last);
    const auto end = std::ranges::find_if(chain, [](uint32_t hash) { return hash & 1; });
    return end != chain.end() ? last + static_cast<uint64_t>(end - chain.begin()) + 1 : 0;
}

} // namespace

DynamicSymbols dynamic_symbols(const Fd& file, std::span<const Elf64_Phdr> segments)
{
    const Segments all(file, segments);
    const Elf64_Phdr* const dynamic = all.dynamic();
    if (!dynamic)
        return {};
    std::map<Elf64_Sxword, uint64_t> values;
    const uint64_t entries = std::min<uint64_t>(dynamic->p_filesz / sizeof(Elf64_Dyn), max_entries);
    for (const Elf64_Dyn& entry : all.read<Elf64_Dyn>(dynamic->p_offset, entries)) {
        if (entry.d_tag == DT_NULL)
            break;
        values.emplace(entry.d_tag, entry.d_un.d_val);
    }
    const auto value = [&](Elf64_Sxword tag) {
        const auto found = values.find(tag);
        return found != values.end() ? std::optional(found->second) : std::nullopt;
    };
    const auto symbols = value(DT_SYMTAB);
    const auto strings = value(DT_STRTAB);
    if (!symbols || !strings || value(DT_STRSZ).value_or(0) > max_strings)
        return {};
    uint64_t count = 0;
    if (const auto hash = value(DT_HASH))
        count = count_by_hash(all, *hash);
    else if (const auto gnu_hash = value(DT_GNU_HASH))
        count = count_by_gnu_hash(all, *gnu_hash);
    const std::vector<char> bytes = all.at<char>(*strings, value(DT_STRSZ).value_or(0));
    return {.symbols = all.at<Elf64_Sym>(*symbols, count),
            .strings = {bytes.begin(), bytes.end()},
            .soname = value(DT_SONAME).value_or(0)};
}

} // namespace gpusnoop
